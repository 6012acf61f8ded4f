import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { readServerConfig } from '../config/config.ts';
import { StartRefusal } from '../config/problem.ts';
import { synchronousFiles } from '../file-access.ts';
import { packageVersion } from '../package-version.ts';
import { applicationTypes, type GeneratedFile } from '../schema-types/application-types.ts';
import { typedSections } from '../schema-types/typed-sections.ts';
import { prepareSections } from '../section/prepare-sections.ts';

const USAGE = `usage: config-types <server.toml> --out <folder>           write <application>.ts and <application>.schema.json for each application
       config-types <server.toml> --out <folder> --check   change nothing; exit with 1 when a file is missing or out of date
       config-types --version
       config-types --help
`;

const EXIT_CLEAN = 0;
const EXIT_REFUSED = 1;
const EXIT_USAGE = 2;

async function main(parameters: readonly string[]): Promise<number> {
  const given = parse(parameters);
  if (given === undefined) {
    process.stderr.write(USAGE);
    return EXIT_USAGE;
  }
  if ('print' in given) {
    process.stdout.write(given.print);
    return EXIT_CLEAN;
  }
  try {
    const files = await generate(given.serverToml);
    return given.check ? compare(files, given.out) : write(files, given.out);
  } catch (error) {
    return report(error);
  }
}

type Given = { readonly print: string } | { readonly serverToml: string; readonly out: string; readonly check: boolean };

function parse(parameters: readonly string[]): Given | undefined {
  const options = { out: { type: 'string' }, check: { type: 'boolean' }, version: { type: 'boolean' }, help: { type: 'boolean' } } as const;
  try {
    const { values, positionals } = parseArgs({ args: [...parameters], options, allowPositionals: true });
    if (values.help && parameters.length === 1) return { print: USAGE };
    if (values.version && parameters.length === 1) return { print: `${packageVersion()}\n` };
    const [serverToml, ...rest] = positionals;
    if (values.help || values.version || !serverToml || rest.length > 0 || !values.out) return undefined;
    return { serverToml, out: values.out, check: values.check ?? false };
  } catch {
    return undefined;
  }
}

/** Loads every section as the server would. The files hold keys and types, and of schemas what they say; never a value of a document. */
async function generate(serverToml: string): Promise<GeneratedFile[]> {
  const { config, problems } = readServerConfig(serverToml);
  if (config === undefined || problems.length > 0) throw new StartRefusal(resolve(serverToml), problems);
  const preparation = await prepareSections(config, config.sections, synchronousFiles);
  if (preparation.problems.length > 0) throw new StartRefusal(config.path, preparation.problems);
  return applicationTypes(typedSections(preparation.prepared));
}

function write(files: readonly GeneratedFile[], folder: string): number {
  mkdirSync(folder, { recursive: true });
  let written = 0;
  for (const { name, text } of files) {
    const path = join(folder, name);
    if (contentOf(path) === text) continue;
    replaceFile(path, text);
    written++;
  }
  process.stdout.write(`config-types: ${written} of ${files.length} files written to ${folder}\n`);
  return EXIT_CLEAN;
}

/** A reader, such as a compiler that watches, gets the old file or the new one. */
function replaceFile(path: string, text: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(temporary, text);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

function compare(files: readonly GeneratedFile[], folder: string): number {
  const stale = files.filter(({ name, text }) => contentOf(join(folder, name)) !== text);
  for (const { name } of stale)
    process.stderr.write(`config-types: ${join(folder, name)} is out of date; run config-types without --check\n`);
  return stale.length === 0 ? EXIT_CLEAN : EXIT_REFUSED;
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function report(error: unknown): number {
  if (error instanceof StartRefusal) {
    for (const line of error.lines) process.stderr.write(`config-types: ${line}\n`);
    return EXIT_REFUSED;
  }
  const { code, path } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  process.stderr.write(`config-types: ${path ?? 'the output folder'} cannot be written (${code})\n`);
  return EXIT_REFUSED;
}

process.exitCode = await main(process.argv.slice(2));
