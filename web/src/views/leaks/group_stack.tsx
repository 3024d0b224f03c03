import { useReport } from "../../answer";
import { Stack } from "../../parts/stack";
import { Empty, Shown } from "../../parts/states";

/** The stack with this id, from the report. */
export function GroupStack({ id }: { id: number }) {
	return (
		<Shown answer={useReport()}>
			{(r) => {
				const group = r.allocation_groups.find((g) => g.backtrace_id === id);

				return group ? (
					<Stack frames={group.backtrace} />
				) : (
					<Empty>The report does not have its stack.</Empty>
				);
			}}
		</Shown>
	);
}
