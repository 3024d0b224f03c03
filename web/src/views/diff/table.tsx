import { useMemo } from "preact/hooks";
import type { Diff, DiffFrame, DiffGroup, Frame } from "../../api";
import { count, sitePlace } from "../../format";
import { choice, go } from "../../state";
import { callerOf } from "../../parts/caller";
import { Stack } from "../../parts/stack";
import { type Column, Table } from "../../parts/table";

interface Row extends DiffGroup {
	readonly id: number;
	readonly caller: DiffFrame | undefined;
}

const asFrame = (f: DiffFrame): Frame => ({ ...f, address: 0, address_s: "", is_inline: false });

const signedCount = (n: number): string => (n > 0 ? `+${count(n)}` : count(n));

function columnsOf(show: (n: number) => string, signed: (n: number) => string): Column<Row>[] {
	return [
		{
			key: "change",
			title: "Change",
			value: (g) => g.change,
			show: (g) => signed(g.change),
			number: true,
		},
		{
			key: "before",
			title: "Before",
			value: (g) => g.before,
			show: (g) => show(g.before),
			number: true,
			minor: true,
		},
		{ key: "after", title: "After", value: (g) => g.after, show: (g) => show(g.after), number: true },
		{
			key: "blocks",
			title: "Blocks",
			about: "change of their number",
			value: (g) => g.change_count,
			show: (g) => signedCount(g.change_count),
			number: true,
			minor: true,
		},
		{
			key: "site",
			title: "Allocated at",
			value: (g) => g.caller?.function ?? "",
			show: ({ caller }) =>
				caller && (
					<>
						<code>{caller.function}</code> <span class="place">{sitePlace(caller)}</span>
					</>
				),
		},
	];
}

interface Props {
	diff: Diff;
	show: (n: number) => string;
	signed: (n: number) => string;
}

/** Stacks by what changed, those that grew most first. */
export function DiffTable({ diff, show, signed }: Props) {
	const columns = useMemo(() => columnsOf(show, signed), [show, signed]);
	const rows = useMemo(
		() => diff.groups.map((g, id) => ({ ...g, id, caller: callerOf(g.backtrace) })),
		[diff],
	);

	return (
		<Table
			caption="Stacks by their change"
			columns={columns}
			rows={rows}
			rowKey={(g) => g.id}
			sort={choice("diff_sort", "change")}
			onSort={(key) => go({ diff_sort: key })}
			detail={(g) => <Stack frames={g.backtrace.map(asFrame)} />}
		/>
	);
}
