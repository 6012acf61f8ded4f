import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { Fault } from '../../options/fault.ts';
import { CONFIG_NAMES } from '../declare/config-names.ts';

/** A statement that one request of a test ran again and again. Without its text, which may contain values. */
export interface RepeatedStatement {
  readonly operation: string;
  readonly table: string | null;
  readonly count: number;
}

/** Below the folder of the app's file, where tools keep what they can do without. One file for each run of the tests. */
const FOLDER = 'node_modules/.cache/kit/repeated-statements';

/** Where the requests of one run of the tests are noted. Starting a run forgets the runs before it: a repaired request is not reported again. */
export class RepeatedStatements {
  readonly #file: string;
  readonly #known = new Set<string>();

  private constructor(folder: string, run: string) {
    this.#file = join(folder, `${run}.jsonl`);
    mkdirSync(folder, { recursive: true });
    for (const name of readdirSync(folder)) if (name !== `${run}.jsonl`) rmSync(join(folder, name), { force: true });
    appendFileSync(this.#file, '');
  }

  /** Null where nothing can be noted: `project` has no app's file, or cannot be written. */
  static open(project: string, run: string): RepeatedStatements | null {
    if (!CONFIG_NAMES.some((name) => existsSync(join(project, name)))) return null;
    try {
      return new RepeatedStatements(join(project, FOLDER), run);
    } catch {
      return null;
    }
  }

  add(found: RepeatedStatement): void {
    const key = JSON.stringify([found.operation, found.table]);
    if (this.#known.has(key)) return;
    this.#known.add(key);
    try {
      appendFileSync(this.#file, `${JSON.stringify(found)}\n`);
    } catch {
      // A test does not fail for the sake of a note.
    }
  }
}

/** W030: what the tests noted in their last run, for operations that the app still has. */
export function repeatedStatements(project: string, routes: readonly CompiledRoute[]): Fault[] {
  const found = new Map(lastRun(join(project, FOLDER)).map((each) => [JSON.stringify([each.operation, each.table]), each]));
  return [...found.values()].flatMap(({ operation, table, count }) => {
    const route = routes.find(({ operationId }) => operationId === operation);
    if (route === undefined) return [];
    const on = table === null ? '' : ` on "${table}"`;
    return [
      {
        id: 'W030',
        message: `${route.controller}.${route.field} (${route.method} ${route.path}) ran the same statement${on} ${count} times or more in one request of the last test run.`,
        hint: 'Load the rows together: `expand` or `requires` of a resource, or one statement for all `rows`. Then run the tests again.',
      },
    ];
  });
}

function lastRun(folder: string): readonly RepeatedStatement[] {
  try {
    const files = readdirSync(folder).map((name) => join(folder, name));
    const [newest] = files.toSorted((left, right) => statSync(right).mtimeMs - statSync(left).mtimeMs);
    return newest === undefined ? [] : readFileSync(newest, 'utf8').split('\n').flatMap(readLine);
  } catch {
    return [];
  }
}

/** A line of another version, or one that was cut off, is skipped. */
function readLine(line: string): RepeatedStatement[] {
  try {
    const { operation, table, count } = JSON.parse(line) as Partial<RepeatedStatement>;
    return typeof operation === 'string' && typeof count === 'number' ? [{ operation, table: table ?? null, count }] : [];
  } catch {
    return [];
  }
}
