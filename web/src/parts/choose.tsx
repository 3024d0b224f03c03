import { choice, go } from "../state";

interface Option {
	readonly name: string;
	readonly title: string;
}

/** A choice of a view that is in the URL as @name; the first option is the default. */
export function Choose({
	name,
	label,
	options,
}: {
	name: string;
	label: string;
	options: readonly Option[];
}) {
	const usual = options[0]?.name ?? "";

	return (
		<label class="choose">
			<span>{label}</span>
			<select
				value={choice(name, usual)}
				onChange={(e) => go({ [name]: e.currentTarget.value === usual ? undefined : e.currentTarget.value })}
			>
				{options.map((o) => (
					<option key={o.name} value={o.name}>
						{o.title}
					</option>
				))}
			</select>
		</label>
	);
}

/** A yes-or-no choice that is in the URL when it differs from @usual. */
export function Check({ name, label, usual }: { name: string; label: string; usual: boolean }) {
	return (
		<label class="check">
			<input
				type="checkbox"
				checked={chosen(name, usual)}
				onChange={(e) => go({ [name]: e.currentTarget.checked === usual ? undefined : usual ? "no" : "yes" })}
			/>
			<span>{label}</span>
		</label>
	);
}

/** What Check has chosen. */
export function chosen(name: string, usual: boolean): boolean {
	return choice(name, usual ? "yes" : "no") === "yes";
}
