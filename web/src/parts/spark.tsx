/** A line without axes, as tall as a line of text. */
export function Spark({ values, label }: { values: readonly number[]; label: string }) {
	const most = Math.max(1, ...values);
	const x = (i: number) => (values.length > 1 ? (100 * i) / (values.length - 1) : 0);
	const points = values.map((v, i) => `${x(i).toFixed(1)},${(22 - (20 * v) / most).toFixed(1)}`).join(" ");

	return (
		<svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={label}>
			<polyline points={points} />
		</svg>
	);
}
