import { render } from "preact";
import { App } from "./app";
import { Failure } from "./parts/states";
import { openSource } from "./source";
import { setSource } from "./state";
import "uplot/dist/uPlot.min.css";
import "./style.css";

const root = document.getElementById("page");

if (root) {
	openSource().then(
		(source) => {
			setSource(source);
			render(<App />, root);
		},
		(e: unknown) => render(<Failure title="The page cannot be shown" why={String(e)} />, root),
	);
}
