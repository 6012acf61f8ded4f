// How long does a server of 10,000 sections with 200 keys each take to start, compared with parsing the same files, and does a touched
// file reload only the sections that list it?
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ConfigServer, loadServerConfig } from '@kit/config-server';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { median } from './harness/contest.ts';
import { pinned, SERVER_CORE } from './harness/cores.ts';
import { table } from './harness/table.ts';

const SECTIONS = 10_000;
const KEYS = 200;
const TOKEN = 'benchmark-token-0123456789-0123456789';
const run = promisify(execFile);

type Format = 'toml' | 'json';

/** 200 keys in 20 tables, as numbers, strings and booleans. */
function writeSection(folder: string, format: Format, application: string, marker: number): void {
  const lines: string[] = [];
  const document: Record<string, Record<string, unknown>> = {};
  for (let group = 0; group < KEYS / 10; group += 1) {
    lines.push(`[${application}.group_${group}]`);
    const settings: Record<string, unknown> = {};
    for (let index = 0; index < 10; index += 1) {
      const value = [marker, `value ${group} of ${application}`, index % 2 === 0][index % 3];
      settings[`key_${index}`] = value;
      lines.push(`key_${index} = ${JSON.stringify(value)}`);
    }
    document[`group_${group}`] = settings;
  }
  const content = format === 'toml' ? lines.join('\n') : JSON.stringify({ [application]: document }, null, 2);
  writeFileSync(join(folder, 'sections', `${application}.${format}`), content);
}

function writeServer(folder: string, format: Format, sections: number): void {
  mkdirSync(join(folder, 'sections'), { recursive: true });
  const names = Array.from({ length: sections }, (_, index) => `app-${index}`);
  for (const name of names) writeSection(folder, format, name, 1);
  const tables = names.map(
    (name) => `[[server.sections]]\napplication = "${name}"\nprofile = "p"\nfiles = ["sections/${name}.${format}"]\n`,
  );
  const client = `[[server.clients]]\nname = "all"\ntoken = "${TOKEN}"\napplications = ${JSON.stringify(names)}\n`;
  writeFileSync(join(folder, 'server.toml'), `[server]\nbind = "127.0.0.1:0"\nwatch_debounce_ms = 20\n${tables.join('')}${client}`);
}

interface Taken {
  readonly ms: number;
  readonly cpuMs: number;
}

async function startTime(mode: 'parse' | 'start', folder: string): Promise<Taken> {
  const script = fileURLToPath(new URL('./servers/scale-start.ts', import.meta.url));
  const node = pinned(SERVER_CORE, process.execPath, ['--conditions=source', script, mode, folder]);
  const [ms = 0, cpuMs = 0] = (await run(node.command, node.args)).stdout.trim().split(' ').map(Number);
  return { ms, cpuMs };
}

export default defineBenchmark({
  name: 'config-scale',
  question: '10,000 sections of 200 keys: start time against parsing the same files, and reloads caused by one touched file',
  async run(context) {
    const root = mkdtempSync(join(tmpdir(), 'bench-config-scale-'));
    const sections = context.quick ? 100 : SECTIONS;
    try {
      const ratios = [];
      const rows: string[][] = [];
      for (const format of ['toml', 'json'] as const) {
        const folder = join(root, format);
        writeServer(folder, format, sections);
        const times = { parse: [] as Taken[], start: [] as Taken[] };
        for (let round = 0; round < context.rounds; round += 1) {
          for (const mode of ['parse', 'start'] as const) times[mode].push(await startTime(mode, folder));
        }
        const of = (mode: 'parse' | 'start', unit: keyof Taken): number => median(times[mode].map((taken) => taken[unit]));
        const ratio = of('start', 'cpuMs') / of('parse', 'cpuMs');
        const cells = [of('parse', 'ms'), of('start', 'ms'), of('parse', 'cpuMs'), of('start', 'cpuMs')].map((value) => value.toFixed(0));
        rows.push([format, ...cells, ratio.toFixed(2)]);
        // By CPU time: on a machine that others use as well, elapsed time measures them.
        ratios.push({ name: `config-scale-start-${format}`, value: ratio, goal: 3, atMost: true });
      }
      context.print(table(['format', 'parsing alone, ms', 'start, ms', 'parsing, CPU ms', 'start, CPU ms', 'times, CPU'], rows));
      const touched = await sectionsReloaded(context, join(root, 'toml'));
      return [...ratios, { name: 'config-scale-sections-reloaded', value: touched, goal: 1, atMost: true }];
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  },
});

/** Sections whose generation moved after one file was written. */
async function sectionsReloaded(context: BenchmarkContext, folder: string): Promise<number> {
  const server = await ConfigServer.start(loadServerConfig(join(folder, 'server.toml')), { log: () => undefined, audit: () => undefined });
  try {
    const moved = async (): Promise<number> => {
      const answer = await fetch(`http://127.0.0.1:${server.address?.port}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
      return [...(await answer.text()).matchAll(/^config_generation\{.*\} (\d+)$/gm)].filter(([, generation]) => generation !== '1').length;
    };
    const started = performance.now();
    writeSection(folder, 'toml', 'app-7', 2);
    while ((await moved()) === 0 && performance.now() - started < 10_000) await new Promise((resolve) => setTimeout(resolve, 5));
    context.print(`a touched file was in service after ${(performance.now() - started).toFixed(0)} ms (debounce 20 ms)`);
    await new Promise((resolve) => setTimeout(resolve, 500));
    return await moved();
  } finally {
    await server.stop();
  }
}
