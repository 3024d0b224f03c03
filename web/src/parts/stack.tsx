import { useState } from "preact/hooks";
import type { Frame } from "../api";
import { base } from "../format";
import { frameName } from "../stacks";
import { linkTo, source } from "../state";

/** The place of a frame, which leads to its source. */
export function PlaceLink({ file, line }: { file: string; line: number | null | undefined }) {
	const text = line ? `${base(file)}:${line}` : base(file);

	if (source().kind === "file") return <span title={file}>{text}</span>;
	return (
		<a href={linkTo({ file, line: line ? String(line) : undefined }, "source")} title={file}>
			{text}
		</a>
	);
}

/** A stack, innermost frame first; the runtime's frames are folded until they are wanted. */
export function Stack({ frames }: { frames: readonly Frame[] }) {
	const [all, setAll] = useState(false);
	const folded = frames.filter((f) => f.folded).length;
	const shown = all ? frames : frames.filter((f) => !f.folded);

	return (
		<div class="stack">
			<ol reversed>
				{[...shown].reverse().map((f, i) => (
					<li key={i}>
						<code>{frameName(f)}</code>
						{f.is_inline && <span class="tag">inlined</span>}{" "}
						<span class="place">
							{f.source ? <PlaceLink file={f.source} line={f.line} /> : (f.library ?? "")}
						</span>
					</li>
				))}
			</ol>
			{folded > 0 && (
				<button type="button" onClick={() => setAll(!all)}>
					{all ? "Fold" : "Show"} {folded} frames of the runtime
				</button>
			)}
		</div>
	);
}
