/* What `annotate` says, from its text. */

export interface Annotated {
	readonly path: string;
	readonly warnings: readonly string[];
	/** The text of the file is known. */
	readonly readable: boolean;
	readonly lines: readonly SourceLine[];
}

export interface SourceLine {
	readonly number: number;
	/** As `4.9 KiB`, or empty. */
	readonly live: string;
	readonly allocated: string;
	readonly temporary: string;
	readonly through: string;
	readonly text: string;
}

const LINE = /^(.{10}) (.{10}) (.{10}) (.{10}) ( *\d+)(?: {2}(.*))?$/;
const WARNING = "WARNING: ";
const UNREADABLE = "this file cannot be read here";

function lineOf(text: string): SourceLine | undefined {
	const found = LINE.exec(text);

	if (!found) return undefined;
	const [live = "", allocated = "", temporary = "", through = "", number = ""] = found
		.slice(1)
		.map((part: string | undefined) => part?.trim() ?? "");

	return { live, allocated, temporary, through, number: Number(number), text: found[6] ?? "" };
}

function fileOf(part: string): Annotated {
	const [path = "", ...rest] = part.split("\n");
	const warnings = rest.filter((l) => l.startsWith(WARNING)).map((l) => l.slice(WARNING.length));

	return {
		path,
		warnings: warnings.filter((w) => !w.startsWith(UNREADABLE)),
		readable: !warnings.some((w) => w.startsWith(UNREADABLE)),
		lines: rest.flatMap((l) => lineOf(l) ?? []),
	};
}

/** The files of an answer: after a line that explains the columns, an empty line is before each. */
export function annotatedFiles(text: string): Annotated[] {
	return text.split("\n\n").slice(1).map(fileOf);
}

export interface Part {
	readonly lines: readonly SourceLine[];
	/** Lines that are left out before it. */
	readonly left: number;
}

/** The lines with numbers, and line @marked, with @around lines before and after each. */
export function partsOf(lines: readonly SourceLine[], marked: number, around: number): Part[] {
	const near = new Set<number>();
	const parts: { lines: SourceLine[]; left: number }[] = [];
	let left = 0;

	for (const [i, l] of lines.entries()) {
		if (l.through === "" && l.live === "" && l.allocated === "" && l.number !== marked) continue;
		for (let k = i - around; k <= i + around; k++) near.add(k);
	}
	for (const [i, l] of lines.entries()) {
		if (!near.has(i)) left++;
		else if (left > 0 || parts.length === 0) {
			parts.push({ lines: [l], left });
			left = 0;
		} else parts.at(-1)?.lines.push(l);
	}
	return parts;
}
