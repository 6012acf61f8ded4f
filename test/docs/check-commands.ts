import { existsSync, globSync, readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { join } from 'node:path';
import { runProgram } from '../../packages/kit/src/cli/program.ts';
import { root } from './pages.ts';
import { commandLines, simpleCommands } from './shell-commands.ts';

/** Has every module: a command of any of them may be on a page. */
const app = join(import.meta.dirname, 'every-module.config.ts');

/** Programs that are not ours and not here; of their commands only the files of the repository are checked. */
const STRANGERS = new Set([
  'age',
  'age-keygen',
  'curl',
  'docker',
  'kubectl',
  'systemctl',
  'install',
  'mv',
  'pg_dump',
  'pg_restore',
  'createdb',
]);

/** What is wrong with commands that cannot be run: programs, options, scripts, variables and files that do not exist. */
export async function commandFaults(text: string): Promise<string[]> {
  const faults: string[] = [];
  for (const line of commandLines(text))
    for (const { variables, words } of simpleCommands(line)) {
      faults.push(...variables.filter((name) => !isRead(name)).map((name) => `the variable ${name} is not read anywhere`));
      faults.push(...words.filter((word) => isPath(word) && !isFile(word)).map((word) => `${word} does not exist`));
      faults.push(...(await programFaults(words)));
    }
  return faults;
}

async function programFaults(words: readonly string[]): Promise<string[]> {
  const own = words.findIndex((word) => ['kit', 'config-server', 'config-types', 'config-secrets'].includes(word));
  // Ours directly, through npx, or in a container: `docker compose … exec <service> kit …`.
  if (own === 0 || words[own - 1] === 'npx' || words[own - 2] === 'exec')
    return words[own] === 'kit' ? kitFaults(words.slice(own + 1)) : configFaults(words[own]!, words.slice(own + 1));
  const [program = '', ...rest] = words;
  if (program === 'npm') return npmFaults(rest);
  if (program === 'npx') return rest[0] === 'vitest' ? [] : [`npx ${rest[0]}: no program of this repository`];
  if (program === 'systemctl') return unitFaults(rest.slice(1));
  return program === '' || STRANGERS.has(program) || isFile(program) ? [] : [`${program}: no program this page may take for granted`];
}

/** The faults of a command line of `kit`, without the program's name. */
export async function kitFaults(args: readonly string[]): Promise<string[]> {
  const commands: string[] = [];
  const words: string[] = [];
  let help = await helpOf([]);
  const general = help;
  for (const [index, word] of args.entries()) {
    const before = args[index - 1] ?? '';
    const isValue = before.startsWith('-') && new RegExp(`${before} [<\\[]`).test(`${help}\n${general}`);
    if (word.startsWith('-') || isValue) continue;
    words.push(word);
    if (words.length > commands.length + 1 || !new RegExp(`^  ${word}\\b`, 'm').test(help)) continue;
    commands.push(word);
    help = await helpOf(commands);
  }
  if (words.length > 0 && commands.length === 0) return [`kit ${words[0]}: no such command`];
  if (/^Commands:/m.test(help) && words.length > commands.length)
    return [`kit ${commands.join(' ')} ${words[commands.length]}: no such command`];
  return args
    .filter((word) => word.startsWith('-'))
    .map((word) => word.split('=')[0] ?? '')
    .filter((option) => !new RegExp(`(^|\\s)${option}\\b`, 'm').test(`${help}\n${general}`))
    .map((option) => `kit ${commands.join(' ')} has no option ${option}`);
}

const helps = new Map<string, Promise<string>>();

function helpOf(commands: readonly string[]): Promise<string> {
  const name = commands.join(' ');
  const known = helps.get(name) ?? askForHelp(commands);
  helps.set(name, known);
  return known;
}

async function askForHelp(commands: readonly string[]): Promise<string> {
  let help = '';
  const stream = new PassThrough().on('data', (chunk: Buffer) => (help += chunk.toString())) as unknown as NodeJS.WriteStream;
  const terminal = { stdin: process.stdin, stdout: stream, stderr: stream };
  const argv = ['--config', app, ...commands, '--help'];
  await runProgram({ argv, cwd: root, environment: {}, terminal, version: '0.0.0' });
  return help;
}

const CONFIG_PROGRAMS: Readonly<Record<string, string>> = {
  'config-server': 'cli/main.ts',
  'config-types': 'cli/types-main.ts',
  'config-secrets': 'secrets/cli/main.ts',
};

function configFaults(program: string, args: readonly string[]): string[] {
  const usage = /usage:[^`]*/.exec(readFileSync(join(root, 'packages/config-server/src', CONFIG_PROGRAMS[program]!), 'utf8'))?.[0] ?? '';
  return args
    .filter((word) => word.startsWith('-') && !usage.split(/[\s[\],;]+/).includes(word))
    .map((option) => `${program} has no option ${option}`);
}

function npmFaults([command = '', ...rest]: readonly string[]): string[] {
  if (['ci', 'install', 'init', 'pkg'].includes(command)) return [];
  const workspace = rest[rest.indexOf('--workspace') + 1] ?? '';
  const manifest = join(root, rest.includes('--workspace') ? workspace : '', 'package.json');
  const script = command === 'run' ? (rest[0] ?? '') : command;
  const { scripts } = JSON.parse(readFileSync(manifest, 'utf8')) as { scripts: Record<string, string> };
  if (!(script in scripts)) return [`npm run ${script}: no such script`];
  const benchmark = script === 'bench' ? rest.slice(1).find((word) => !word.startsWith('-')) : undefined;
  return benchmark === undefined || isFile(`benchmarks/${benchmark}.ts`) ? [] : [`there is no benchmark ${benchmark}`];
}

function unitFaults(words: readonly string[]): string[] {
  const units = words.filter((word) => !word.startsWith('-'));
  return units
    .filter((unit) => !isFile(`deploy/systemd/${unit.replace(/@.+$/, '@')}.service`))
    .map((unit) => `${unit}: no unit of deploy/systemd`);
}

const isPath = (word: string): boolean => /^(?:\.ci|benchmarks|deploy|docs|examples|packages|scripts|test)\//.test(word);

const isFile = (path: string): boolean => (path.includes('*') ? globSync(path, { cwd: root }).length > 0 : existsSync(join(root, path)));

let sources: string | undefined;

/** Whether any program of the repository names the variable. */
function isRead(name: string): boolean {
  sources ??= globSync(
    ['packages/*/{src,bin}/**/*.{ts,js}', 'packages/*/*.ts', 'examples/**/*.ts', 'scripts/*.ts', 'test/provision/*.ts'],
    {
      cwd: root,
      exclude: ['**/node_modules/**', '**/dist/**', '**/site/**', '**/*.test.ts'],
    },
  )
    .map((path) => readFileSync(join(root, path), 'utf8'))
    .join('\n');
  return new RegExp(`\\b${name}\\b`).test(sources);
}
