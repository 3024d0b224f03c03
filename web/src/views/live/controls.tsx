import { useRef, useState } from "preact/hooks";
import type { Look } from "../../api";
import { forgetAnswers } from "../../answer";
import { queryOf } from "../../source";
import { useCommand } from "../../parts/command";
import { Failure } from "../../parts/states";

function Marking({ busy, mark }: { busy: boolean; mark: (name: string) => void }) {
	const [name, setName] = useState("");
	const submit = (e: Event) => {
		e.preventDefault();
		if (name.trim() === "") return;
		mark(name.trim());
		setName("");
	};

	return (
		<form class="marking" onSubmit={submit}>
			<label class="search">
				<span class="unseen">Name of the mark</span>
				<input
					value={name}
					maxLength={100}
					placeholder="name of a mark"
					onInput={(e) => setName(e.currentTarget.value)}
				/>
			</label>
			<button type="submit" disabled={busy || name.trim() === ""}>
				Mark
			</button>
		</form>
	);
}

function Ending({ busy, end }: { busy: boolean; end: () => void }) {
	const dialog = useRef<HTMLDialogElement>(null);
	const confirmed = () => {
		dialog.current?.close();
		end();
	};

	return (
		<>
			<button type="button" disabled={busy} onClick={() => dialog.current?.showModal()}>
				End the recording…
			</button>
			<dialog ref={dialog} aria-labelledby="ending">
				<h2 id="ending">End the recording?</h2>
				<p>memprof is detached, and the process is then as it was. What was recorded remains.</p>
				<div class="choices">
					<button type="button" onClick={confirmed}>
						End it
					</button>
					<button type="button" onClick={() => dialog.current?.close()}>
						Go on recording
					</button>
				</div>
			</dialog>
		</>
	);
}

interface Props {
	look: Look;
	frozen: boolean;
	freeze: () => void;
	ended: () => void;
}

/** Freezes the page; pauses, marks, flushes and ends the recording. */
export function LiveControls({ look, frozen, freeze, ended }: Props) {
	const { busy, error, run } = useCommand<unknown>();
	const [done, setDone] = useState("");

	return (
		<section class="card" aria-label="Controls">
			<div class="choices">
				<button
					type="button"
					aria-pressed={frozen}
					title="Only the page: the recording continues"
					onClick={freeze}
				>
					Freeze the page
				</button>
				<button
					type="button"
					disabled={busy}
					onClick={() =>
						run(look.paused ? "resume" : "pause", () =>
							setDone(look.paused ? "The recording continues." : "The recording is paused."),
						)
					}
				>
					{look.paused ? "Resume" : "Pause"} the recording
				</button>
				<button
					type="button"
					disabled={busy}
					title="Writes to the file what happened until now, so that other views have it"
					onClick={() =>
						run("flush", () => {
							forgetAnswers();
							setDone("The other views have what happened until now.");
						})
					}
				>
					Flush
				</button>
				<Marking
					busy={busy}
					mark={(name) => run(`mark${queryOf({ name })}`, () => setDone(`The mark ${name} is set.`))}
				/>
				<Ending busy={busy} end={() => run("detach", ended)} />
			</div>
			<p role="status">{busy ? "Asking the recorder…" : done}</p>
			{error !== undefined && <Failure title="That failed" why={error} />}
		</section>
	);
}
