/** The innermost frame outside of the library that has the allocator.  @stack: outermost frame first. */
export function callerOf<F extends { library?: string | null }>(stack: readonly F[]): F | undefined {
	const allocator = stack.at(-1)?.library;

	return [...stack].reverse().find((f) => f.library !== allocator) ?? stack.at(-2) ?? stack.at(-1);
}
