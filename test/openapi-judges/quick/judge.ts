// Judges one OpenAPI document in one process: node judge.ts <folder with the judges> <document> <file for the types>. Prints what was found as JSON.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, file, out] = process.argv.slice(2) as [string, string, string];
const require = createRequire(join(folder, 'package.json'));
// oxlint-disable-next-line typescript/no-explicit-any -- packages that the workspace does not have
const load = async (name: string): Promise<any> => import(pathToFileURL(require.resolve(name)).href);

const [redocly, spectral, rulesets, typescript] = await Promise.all(
  ['@redocly/openapi-core', '@stoplight/spectral-core', '@stoplight/spectral-rulesets', 'openapi-typescript'].map(load),
);
const text = readFileSync(file, 'utf8');

const problems = await redocly.lint({ ref: file, config: await redocly.createConfig({ extends: ['recommended'] }) });
const linter = new spectral.Spectral();
linter.setRuleset({ extends: [rulesets.oas] });
const results = await linter.run(JSON.parse(text));
// The CommonJS build.
const { default: generate, astToString } = typescript.default;
writeFileSync(out, astToString(await generate(JSON.parse(text), { silent: true })));

interface Problem {
  readonly ruleId: string;
  readonly message: string;
  readonly location: readonly { readonly pointer?: string }[];
}
interface Result {
  readonly code: string;
  readonly message: string;
  readonly path: readonly string[];
}
process.stdout.write(
  JSON.stringify({
    redocly: (problems as Problem[]).map(({ ruleId, message, location }) => `${ruleId} ${message} ${location[0]?.pointer}`),
    spectral: (results as Result[]).map(({ code, message, path }) => `${code} ${message} ${path.join('/')}`),
  }),
);
