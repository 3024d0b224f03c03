import { choice, replace } from "../state";

/** A text that is looked for, in the URL as `search`. */
export function Search({ label = "Search" }: { label?: string }) {
	return (
		<label class="search">
			<span>{label}</span>
			<input
				type="search"
				value={choice("search")}
				onInput={(e) => replace({ search: e.currentTarget.value || undefined })}
			/>
		</label>
	);
}
