import filterList from "virtual:filters";
import { useState } from "preact/hooks";
import { type Changes, filters, go } from "../state";

/* The names of filters as people read them. */
const readable = (name: string): string => name.replaceAll("_", " ");

const HINTS: Record<string, string> = {
	TimePoint: "10s, 50%",
	Duration: "100ms",
	DurationOrShare: "100ms, 10%",
	Bytes: "64k",
	Regex: "regular expression",
	Number: "number",
	CountOrShare: "number, 10%",
};

/* With other filters lists begin at their first page. */
function set(changes: Changes): void {
	go({ ...changes, page: undefined });
}

function Chip({ name, value, others }: { name: string; value: string; others: string[] }) {
	return (
		<li class="chip">
			<span>
				{readable(name)} <strong>{value}</strong>
			</span>
			<button
				type="button"
				aria-label={`Remove the filter ${readable(name)} ${value}`}
				onClick={() => set({ [name]: others })}
			>
				✕
			</button>
		</li>
	);
}

function Adding({ done }: { done: () => void }) {
	const [name, setName] = useState("function_regex");
	const [value, setValue] = useState("");
	const filter = filterList.find((f) => f.name === name);

	if (!filter) return null;
	const choose = (other: string) => {
		setName(other);
		setValue("");
	};
	const add = (e: Event) => {
		const given = value || (filter.words[0] ?? "");

		e.preventDefault();
		if (given === "") return;
		const before = [filters.value[name] ?? []].flat().filter((v) => v !== given);

		set({ [name]: filter.again ? [...before, given] : given });
		done();
	};

	return (
		<form class="adding" onSubmit={add}>
			<label>
				<span>Allocations whose</span>
				<select value={name} onChange={(e) => choose(e.currentTarget.value)}>
					{filterList.map((f) => (
						<option key={f.name} value={f.name}>
							{readable(f.name)}
						</option>
					))}
				</select>
			</label>
			<label>
				<span>is</span>
				{filter.words.length > 0 ? (
					<select value={value} onChange={(e) => setValue(e.currentTarget.value)}>
						{filter.words.map((w) => (
							<option key={w} value={w}>
								{readable(w)}
							</option>
						))}
					</select>
				) : (
					<input
						value={value}
						placeholder={HINTS[filter.kind] ?? ""}
						onInput={(e) => setValue(e.currentTarget.value)}
					/>
				)}
			</label>
			<button type="submit">Add</button>
			<p class="about">{filter.about}</p>
		</form>
	);
}

/** The conditions on allocations, which hold in every view. */
export function Filters() {
	const [adding, setAdding] = useState(false);
	const given = Object.entries(filters.value).flatMap(([name, values]) => {
		const all = [values ?? []].flat();

		return all.map((value) => ({ name, value, others: all.filter((v) => v !== value) }));
	});
	const none = Object.fromEntries(given.map(({ name }) => [name, undefined]));

	return (
		<section class="filters" aria-label="Filters">
			{given.length > 0 && (
				<ul>
					{given.map((f) => (
						<Chip key={`${f.name} ${f.value}`} {...f} />
					))}
				</ul>
			)}
			<button type="button" aria-expanded={adding} onClick={() => setAdding(!adding)}>
				{given.length > 0 ? "Add a filter" : "Filter"}
			</button>
			{given.length > 0 && (
				<button type="button" onClick={() => set(none)}>
					Remove all
				</button>
			)}
			{adding && <Adding done={() => setAdding(false)} />}
		</section>
	);
}
