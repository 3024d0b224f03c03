import a11y from "eslint-plugin-jsx-a11y";
import hooks from "eslint-plugin-react-hooks";
import ts from "typescript-eslint";

export default ts.config(
	{ ignores: ["node_modules", "eslint.config.js"] },
	...ts.configs.strictTypeChecked,
	...ts.configs.stylisticTypeChecked,
	a11y.flatConfigs.strict,
	{
		plugins: { "react-hooks": hooks },
		rules: {
			...hooks.configs.recommended.rules,
			"react-hooks/exhaustive-deps": "error",
			/* Regions that scroll can be focused, so that keys scroll them. */
			"jsx-a11y/no-noninteractive-tabindex": ["error", { roles: ["region"], tags: [] }],
			eqeqeq: "error",
			"@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
			"@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
		},
		languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
	},
);
