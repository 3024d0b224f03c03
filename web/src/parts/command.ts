import { useState } from "preact/hooks";
import { recording, source } from "../state";

interface State<T> {
	readonly busy: boolean;
	readonly value?: T | undefined;
	/** When the value was there. */
	readonly at?: Date;
	readonly error?: string | undefined;
}

export interface Command<T> extends State<T> {
	/** @endpoint: of the chosen recording, with its parameters. */
	readonly run: (endpoint: string, done?: (value: T) => void) => void;
}

/** A POST that the user begins.  Until it is done, and if it fails, the value before it remains. */
export function useCommand<T>(): Command<T> {
	const [state, setState] = useState<State<T>>({ busy: false });
	const run = (endpoint: string, done?: (value: T) => void) => {
		setState((before) => ({ ...before, busy: true, error: undefined }));
		source()
			.post(`data/${recording.value}/${endpoint}`)
			.then(
				(value) => {
					setState({ busy: false, value: value as T, at: new Date() });
					done?.(value as T);
				},
				(e: unknown) => {
					const error = e instanceof Error ? e.message : String(e);

					setState((before) => ({ ...before, busy: false, error }));
				},
			);
	};

	return { ...state, run };
}
