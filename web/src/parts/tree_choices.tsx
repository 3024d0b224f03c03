import { useMemo } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { Report } from "../api";
import { type Cost, costOf, costs, type Node, treeOf } from "../stacks";
import { choice } from "../state";
import { Check, Choose, chosen } from "./choose";
import { Search } from "./search";

/** What the flame graph and the call tree let choose.  @children: more of it. */
export function TreeChoices({ label, children }: { label: string; children?: ComponentChildren }) {
	return (
		<div class="choices">
			<Choose name="cost" label={label} options={costs} />
			{children}
			<Check name="invert" label="Invert: allocating functions first" usual={false} />
			<Check name="heavy" label="Left-heavy" usual={true} />
			<Check name="fold" label="Fold std:: and the allocator" usual={true} />
			<Search />
		</div>
	);
}

/** The tree that is chosen. */
export function useTree(report: Report): { tree: Node; cost: Cost } {
	const cost = costOf(choice("cost"));
	const fold = chosen("fold", true);
	const invert = chosen("invert", false);
	const heavy = chosen("heavy", true);
	const tree = useMemo(
		() => treeOf(report.allocation_groups, cost, { fold, invert, heavy }),
		[report, cost, fold, invert, heavy],
	);

	return { tree, cost };
}
