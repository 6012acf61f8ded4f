import { pathToFileURL } from 'node:url';
import type { App } from '../../app/declare/module.ts';
import { CliFailure } from '../terminal/cli-failure.ts';
import { errorPlace } from '../terminal/error-place.ts';
import { explainDatabaseFailure } from '../terminal/explain-failure.ts';

export type ImportConfig = (file: string) => Promise<Record<string, unknown>>;

const importOnce: ImportConfig = (file) => import(pathToFileURL(file).href) as Promise<Record<string, unknown>>;

/** Imports the config file and answers its default export, which must be an app. Nothing is opened yet. */
export async function loadApp(file: string, importConfig = importOnce): Promise<App> {
  let exports: Record<string, unknown>;
  try {
    exports = await importConfig(file);
  } catch (cause) {
    const remedy = isCommonJs(cause) ? '\nThe nearest package.json does not have "type": "module". Run: npm pkg set type=module' : '';
    const place = isExplained(cause) ? '' : errorPlace(cause);
    throw new CliFailure(`${file} could not be loaded: ${sentence(cause)}${place}${remedy}`, 1, { cause });
  }
  const app = await exports['default'];
  if (isApp(app)) return app;
  const found = 'default' in exports ? `is ${describe(app)}` : 'is missing';
  throw new CliFailure(`The default export of ${file} ${found}; it must be an app. Write: export default createApp({ … })`);
}

// By shape, not by class: the app may come from another copy of the package than this program.
function isApp(value: unknown): value is App {
  if (typeof value !== 'object' || value === null) return false;
  const candidate = value as Partial<Record<keyof App, unknown>>;
  return typeof candidate.ready === 'function' && typeof candidate.listen === 'function' && Array.isArray(candidate.modules);
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'function') return 'a function';
  return typeof value === 'object' ? `an object with ${Object.keys(value).slice(0, 5).join(', ') || 'nothing in it'}` : `a ${typeof value}`;
}

/** A list of start-up faults says where each of them is; the place of its throw is `createApp`. */
function isExplained(cause: unknown): boolean {
  return (cause as { readonly code?: unknown } | null)?.code === 'start_up_failed';
}

/** `npm init` writes `"type": "commonjs"`, and Node then reads a file of `import` lines as the other kind of module. */
function isCommonJs(cause: unknown): boolean {
  return cause instanceof SyntaxError && cause.message === 'Cannot use import statement outside a module';
}

function sentence(cause: unknown): string {
  return cause instanceof Error ? (explainDatabaseFailure(cause) ?? cause.message) : String(cause);
}
