import { chmodSync, cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import type { TestContext } from 'vitest';
import { codeBlocks, root, titleOf, type CodeBlock } from './pages.ts';
import { commandLines, readyWhen } from './shell-commands.ts';
import { ResidentKit } from './resident-kit.ts';
import { Terminal, type Running } from './terminal.ts';
import { freePort } from '../provision/free-port.ts';

/** What a page takes for granted, and what a person would type when a command asks. */
export interface Preparation {
  /** A folder of the repository whose files the reader has. */
  readonly files?: string;
  /** Another page whose titled files the reader has. */
  readonly after?: string;
  /** Commands the reader has run, and variables that are set, before the page begins. */
  readonly before?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** What is typed into a block that holds this text; it may depend on what was printed so far. */
  readonly input?: Readonly<Record<string, (printed: string) => string>>;
  /** What a block that holds this text has printed at the end of the page. */
  readonly finally?: Readonly<Record<string, RegExp>>;
}

/** The test that walks a page; pages are walked at the same time, so each brings its own. */
type PageTest = Pick<TestContext, 'expect' | 'onTestFinished'>;

/** Whether a block is for the shell and not marked as one that is only checked, or that another test runs. */
export function isRun({ language, flags }: CodeBlock): boolean {
  return language === 'sh' && !flags.includes('not-run') && !flags.includes('tour');
}

/**
 * Does what a reader of the page does, from top to bottom: saves the files it shows and runs its commands as they are written, in a
 * folder outside the repository. Only the ports are others, so that pages do not meet. Answers how many blocks were run.
 */
export async function walkPage(page: string, preparation: Preparation, context: PageTest): Promise<number> {
  const place = makePlace(preparation);
  context.onTestFinished(() => place.kit.close());
  const ports = new Ports();
  const environment = {
    PATH: [place.programs, join(root, 'node_modules/.bin'), process.env['PATH'] ?? ''].join(delimiter),
    HOME: place.home,
    PORT: await ports.replace('3000'),
    ...preparation.environment,
  };
  const terminals: Terminal[] = [];
  const terminal = (): Terminal => {
    const opened = new Terminal(place.folder, environment, place.scratch);
    terminals.push(opened);
    return opened;
  };
  context.onTestFinished(() => {
    for (const opened of terminals) opened.close();
    rmSync(place.home, { recursive: true, force: true });
  });

  let current = terminal();
  let printed = '';
  const ran: { readonly text: string; readonly running: Running }[] = [];
  if (preparation.files !== undefined) await ports.replaceIn(place.folder);
  if (preparation.after !== undefined) await saveFiles(codeBlocks(preparation.after), place.folder, ports, true);
  const blocks = codeBlocks(page);
  for (const [index, block] of blocks.entries()) {
    if (titleOf(block) !== undefined || block.flags.includes('continues')) {
      const [starts, failures] = [countInDev(ran, ' listens on '), countInDev(ran, 'The app ended')];
      await saveFiles(blocks.slice(0, index + 1), place.folder, ports);
      // Of several blocks of one file the last one is what the reader saves; until then it may not start.
      if (starts > 0 && !blocks[index + 1]?.flags.includes('continues')) {
        const settled = (): number => countInDev(ran, ' listens on ') - starts + (countInDev(ran, 'The app ended') - failures);
        await context.expect.poll(settled, { timeout: 300_000, interval: 20 }).toBeGreaterThan(0);
        if (countInDev(ran, 'The app ended') > failures) throw new Error(`${page}:${block.line} does not start:\n${outputOfDev(ran)}`);
      }
    }
    if (!isRun(block)) continue;
    if (ran.length === 0 && preparation.before !== undefined)
      await finish(current.start(preparation.before), `${page}, what comes before it,`);
    const where = `${page}:${block.line}`;
    const lines = commandLines(block.text);
    const servers = lines.filter((line) => readyWhen(line) !== undefined);
    const serves = servers.some((line) => !line.endsWith('&'));
    if (serves && servers.at(-1) !== lines.at(-1)) throw new Error(`${where}: what follows "${servers.at(-1)}" is never run`);

    // A program that keeps its terminal is started in one of its own, unless commands before it in the block say which.
    const used = serves && lines.length === 1 ? terminal() : current;
    const input = Object.entries(preparation.input ?? {}).find(([text]) => block.text.includes(text))?.[1](printed) ?? '';
    const running = used.start(await ports.replace(block.text), input);
    if (serves) {
      if (used === current) current = terminal();
    } else await finish(running, where);
    for (const line of servers) await until(running, readyWhen(line) ?? /^/, where, serves, context);
    await expectOutput(running, await ports.inOutput(blocks[index + 1]), where, context);
    printed += running.output();
    ran.push({ text: block.text, running });
  }
  for (const [text, expected] of Object.entries(preparation.finally ?? {})) {
    const block = ran.find((candidate) => candidate.text.includes(text));
    await context.expect.poll(() => block?.running.output(), { timeout: 120_000 }).toMatch(expected);
  }
  return ran.length;
}

type Ran = readonly { readonly text: string; readonly running: Running }[];

/** What the `kit dev` of a page has printed so far. */
function outputOfDev(ran: Ran): string {
  return ran
    .filter(({ text }) => /\bkit dev\b/.test(text))
    .map(({ running }) => running.output())
    .join('');
}

function countInDev(ran: Ran, text: string): number {
  return outputOfDev(ran).split(text).length - 1;
}

interface Place {
  readonly home: string;
  readonly folder: string;
  readonly programs: string;
  readonly scratch: string;
  readonly kit: ResidentKit;
}

/** The reader's folder, with the packages in it as `npm install` would have put them there. */
function makePlace({ files }: Preparation): Place {
  const home = mkdtempSync(join(tmpdir(), 'kit-page-'));
  const place = { home, folder: join(home, files ?? 'app'), programs: join(home, '.programs'), scratch: join(home, '.scratch') };
  for (const folder of [dirname(place.folder), place.programs, place.scratch]) mkdirSync(folder, { recursive: true });
  if (files === undefined) mkdirSync(place.folder);
  else cpSync(join(root, files), place.folder, { recursive: true, filter: (path) => !path.includes('.data') });
  symlinkSync(join(root, 'node_modules'), join(home, 'node_modules'));
  const program = (name: string, text: string): void => {
    writeFileSync(join(place.programs, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(place.programs, name), 0o755);
  };
  // npx takes a second to find what is on the path here; what `npm install` would bring is there.
  program('npx', 'exec "$@"');
  program('npm', 'case "$1" in install|ci) exit 0;; esac\nPATH="${PATH#*:}" exec npm "$@"');
  const kit = new ResidentKit(place.folder, place.scratch);
  program('kit', kit.script(place.scratch, `node --conditions=source '${join(root, 'packages/kit/bin/kit.js')}'`));
  return { ...place, kit };
}

async function saveFiles(blocks: readonly CodeBlock[], folder: string, ports: Ports, every = false): Promise<void> {
  const files = new Map<string, string>();
  let file = '';
  for (const block of blocks) {
    file = titleOf(block) ?? (block.flags.includes('continues') ? file : '');
    if (file !== '' && block.language !== 'sh')
      files.set(file, `${block.flags.includes('continues') ? (files.get(file) ?? '') : ''}${block.text}\n`);
  }
  // Only what is new on the page: commands may have changed the others since.
  for (const [name, text] of [...files].filter(([name]) => every || name === file)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), await ports.replace(text));
  }
}

/** A free port for each one a page names, the same every time. */
class Ports {
  readonly #chosen = new Map<string, string>();

  async replace(text: string): Promise<string> {
    const pattern = /(?<=127\.0\.0\.1:|localhost:|--port |^)\d{4}\b/g;
    for (const [port] of text.matchAll(pattern)) if (!this.#chosen.has(port)) this.#chosen.set(port, String(await freePort()));
    return text.replaceAll(pattern, (port) => this.#chosen.get(port) ?? port);
  }

  async inOutput(block: CodeBlock | undefined): Promise<CodeBlock | undefined> {
    return block && { ...block, text: await this.replace(block.text) };
  }

  async replaceIn(folder: string): Promise<void> {
    for (const path of globSync('**/*.{toml,ts}', { cwd: folder }))
      writeFileSync(join(folder, path), await this.replace(readFileSync(join(folder, path), 'utf8')));
  }
}

async function finish(running: Running, where: string): Promise<void> {
  const code = await running.exit;
  if (code !== 0) throw new Error(`${where} ended with ${code}:\n${running.output()}`);
}

async function until(running: Running, ready: RegExp, where: string, serves: boolean, { expect }: PageTest): Promise<void> {
  let ended = false;
  if (serves) void running.exit.then(() => (ended = true));
  await expect.poll(() => ended || ready.test(running.output()), { timeout: 300_000, interval: 20 }).toBe(true);
  if (ended) throw new Error(`${where} ended instead of serving:\n${running.output()}`);
}

/** Compares what a block printed with the block of output that comes right after it on the page. */
async function expectOutput(running: Running, shown: CodeBlock | undefined, where: string, { expect }: PageTest): Promise<void> {
  if (shown === undefined || titleOf(shown) !== undefined) return;
  const printed = (): unknown => ({ where, printed: withoutJobs(running.output()) });
  if (shown.language === 'text') {
    const pattern = shown.text.trim().split('…').map(escapeRegExp).join('[^\\n]*');
    await expect.poll(printed, { timeout: 120_000 }).toEqual({ where, printed: expect.stringMatching(new RegExp(`^${pattern}$`)) });
  }
  if (shown.language === 'json') {
    const documents = running
      .output()
      .split('\n')
      .filter((line) => /^[[{].*[\]}]$/.test(line))
      .map((line) => changing(JSON.parse(line)));
    expect({ where, documents }).toEqual({ where, documents: expect.arrayContaining([changing(JSON.parse(shown.text))]) });
  }
}

/** The shell's own lines about jobs that were killed are nothing a program printed. */
function withoutJobs(output: string): string {
  return output.replaceAll(/^\S+: line \d+: +\d+ (?:Killed|Terminated).*\n/gm, '').trim();
}

const escapeRegExp = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);

/** Identifiers, times, keys and secrets are others at every run. */
function changing(document: unknown): unknown {
  const text = JSON.stringify(document)
    .replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, 'ID')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/(?<="commit":")[\da-f]{40}/g, 'COMMIT')
    .replaceAll(/(?<="request_id":")[^"]+/g, 'REQUEST')
    .replaceAll(/whsec_[\w+/=]+/g, 'SECRET');
  return JSON.parse(text);
}
