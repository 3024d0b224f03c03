declare module "virtual:filters" {
	interface Filter {
		readonly name: string;
		/** The schema of its value in openapi.json, or Text. */
		readonly kind: string;
		/** The values that it can have; empty: any of its kind. */
		readonly words: readonly string[];
		readonly about: string;
		/** It can be given several times. */
		readonly again: boolean;
	}
	const filters: readonly Filter[];
	export default filters;
}
