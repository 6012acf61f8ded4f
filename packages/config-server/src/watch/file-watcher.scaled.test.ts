import { mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { scaled } from '../../../../test/provision/scale.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { FileWatcher } from './file-watcher.ts';

const ROUNDS = scaled(15, 1_500);
const WATCHED = ['f', 'a/f', 'a/b/f', 'link/f', 'link/a/f', '..data/f', 'a/..data/f', 'b/link/f'];

const directory = fc
  .array(fc.constantFrom('a', 'b', 'link', '..data', 'v1', 'v2'), { minLength: 1, maxLength: 3 })
  .map((names) => names.join('/'));
/** Links lead to names beside them or from the root of the tree; one with `..` could lead out of it, and the next step with it. */
const target = fc.oneof(
  fc.tuple(fc.constant(false), directory),
  fc.tuple(fc.constant(true), directory),
  fc.constant([false, '.'] as const),
);

/** One change to the tree of files. Most random ones are not possible at the time; those change nothing. */
type Step = (root: string) => void;
const step: fc.Arbitrary<Step> = fc.oneof(
  directory.map(
    (path): Step =>
      (root) =>
        void mkdirSync(join(root, path), { recursive: true }),
  ),
  directory.map(
    (path): Step =>
      (root) =>
        rmSync(join(root, path), { recursive: true, force: true }),
  ),
  fc.tuple(directory, directory).map(
    ([from, to]): Step =>
      (root) =>
        renameSync(join(root, from), join(root, to)),
  ),
  fc.tuple(directory, target).map(([path, [isAbsolute, to]]): Step => (root) => {
    rmSync(join(root, 'new-link'), { force: true });
    symlinkSync(isAbsolute ? join(root, to) : to, join(root, 'new-link'));
    renameSync(join(root, 'new-link'), join(root, path));
  }),
  fc.tuple(directory, fc.nat()).map(
    ([path, text]): Step =>
      (root) =>
        writeFileSync(join(root, path, 'f'), `in place ${text}`),
  ),
  fc.tuple(directory, fc.nat()).map(([path, text]): Step => (root) => {
    writeFileSync(join(root, path, 'f.new'), `replaced ${text}`);
    renameSync(join(root, path, 'f.new'), join(root, path, 'f'));
  }),
  directory.map(
    (path): Step =>
      (root) =>
        rmSync(join(root, path, 'f')),
  ),
);

function tryStep(run: Step, root: string): void {
  try {
    run(root);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
  }
}

/** What somebody who reads the file all the time would see. */
function polled(path: string): string {
  try {
    const { ino, dev, mtimeMs } = statSync(path);
    return `${dev} ${ino} ${mtimeMs} ${readFileSync(path, 'utf8')}`;
  } catch {
    return 'missing';
  }
}

async function untilQuiet(reported: ReadonlySet<string>): Promise<void> {
  for (let before = -1; before !== reported.size;) {
    before = reported.size;
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
}

test(
  `${ROUNDS} rounds of random changes to directories, links and files: whatever polling would see is reported`,
  { timeout: 3_600_000 },
  async () => {
    const root = await temporaryFolder();
    const paths = WATCHED.map((path) => join(root, path));
    const reported = new Set<string>();
    const watcher = new FileWatcher({ onChange: (path) => reported.add(path), onProblem: () => undefined });
    onTestFinished(() => watcher.close());
    watcher.watch(paths);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        await untilQuiet(reported);
        reported.clear();
        const before = paths.map(polled);
        for (const each of steps) tryStep(each, root);
        const changed = paths.filter((path, index) => polled(path) !== before[index]);
        for (const end = Date.now() + 60_000; !changed.every((path) => reported.has(path)) && Date.now() < end;) {
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        expect(changed.filter((path) => !reported.has(path))).toEqual([]);
      }),
      // The tree is what the rounds before left, so a failure cannot be made smaller.
      { numRuns: ROUNDS, endOnFailure: true },
    );
  },
);
