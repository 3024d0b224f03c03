import { Fragment } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { count } from "../../format";
import type { Part, SourceLine } from "./annotated";

function Line({ line: l, marked }: { line: SourceLine; marked: boolean }) {
	const row = useRef<HTMLTableRowElement>(null);

	useEffect(() => {
		if (marked) row.current?.scrollIntoView({ block: "center" });
	}, [marked]);
	return (
		<tr ref={row} aria-current={marked ? "location" : undefined}>
			<td class="number">{l.live}</td>
			<td class="number">{l.allocated}</td>
			<td class="number minor">{l.temporary}</td>
			<td class="number minor">{l.through}</td>
			<th scope="row" class="number">
				{marked && <span aria-hidden="true">▸ </span>}
				{l.number}
			</th>
			<td>
				<code>{l.text}</code>
			</td>
		</tr>
	);
}

/** Lines of a source file with the bytes of each.  @through: what the column of all stacks is called. */
export function SourceTable({
	caption,
	parts,
	marked,
	through,
}: {
	caption: string;
	parts: readonly Part[];
	marked: number;
	through: string;
}) {
	return (
		<div class="scroll" role="region" aria-label={caption} tabIndex={0}>
			<table class="source">
				<caption class="unseen">{caption}</caption>
				<thead>
					<tr>
						<th class="number">Live</th>
						<th class="number">Allocated</th>
						<th class="number minor">Temporary</th>
						<th class="number minor">{through}</th>
						<th class="number">Line</th>
						<th>Source</th>
					</tr>
				</thead>
				<tbody>
					{parts.map((p) => (
						<Fragment key={p.lines[0]?.number}>
							{p.left > 0 && (
								<tr class="left-out">
									<td colSpan={6}>{count(p.left)} lines that allocate nothing</td>
								</tr>
							)}
							{p.lines.map((l) => (
								<Line key={l.number} line={l} marked={l.number === marked} />
							))}
						</Fragment>
					))}
				</tbody>
			</table>
		</div>
	);
}
