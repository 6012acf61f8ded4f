import { readFile } from 'node:fs/promises';
import { basename, extname, join, resolve } from 'node:path';
import { ClientRefused } from '../../openapi/clients/client-plan.ts';
import { CLIENT_LANGUAGES, type ClientLanguage, generateClient, generateTanstack } from '../../openapi/clients/generate-client.ts';
import { pythonWheel, wheelFault } from '../../openapi/clients/python-wheel.ts';
import { renamedMethods } from '../../openapi/clients/renamed-methods.ts';
import type { App } from '../../app/declare/module.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { unreadable, unwritable } from '../../work/file-fault.ts';
import { replaceFile } from '../load/write-client.ts';

interface ClientCommandOptions {
  readonly out: string;
  readonly check?: boolean;
  readonly mount?: string;
  readonly dates?: boolean;
  readonly package?: string;
  readonly with?: string;
}

/** `kit client typescript --out src/api.ts`. */
export const clientCommand: CoreCommand = (command, context) => {
  command
    .argument('<language>', 'typescript or python')
    .requiredOption('-o, --out <file>', 'the file to write; with --package, its folder')
    .option('--check', 'fail unless the file is the current client, and list renamed methods; writes nothing')
    .option('--mount <prefix>', 'only the operations of one version, e.g. /v1')
    .option('--dates', 'TypeScript: points in time are Dates instead of strings')
    .option('--package <name>', 'Python: a wheel of this name for pip, with the version of the app')
    .option('--with <library>', 'TypeScript: helpers in a second file; tanstack is for TanStack Query 5')
    .addHelpText('after', '\nThe same routes always give the same text. No database is opened.')
    .action((language: string, options: ClientCommandOptions) => generate(language, options, context));
};

async function generate(language: string, options: ClientCommandOptions, context: CliContext): Promise<void> {
  const { out, mount, dates = false, package: name, with: library } = options;
  if (!isLanguage(language)) return context.fail(`Clients are generated in typescript or python, not ${JSON.stringify(language)}.`);
  if (dates && language !== 'typescript') return context.fail('--dates is for typescript; clients in Python have strings.');
  if (name !== undefined && language !== 'python')
    return context.fail('--package is for python; a client in TypeScript is one file of your project.');
  if (library !== undefined && (library !== 'tanstack' || language !== 'typescript' || extname(out) === ''))
    return context.fail('--with knows tanstack, for clients in typescript, whose file has an ending such as .ts.');
  const app = await context.bareApp();
  const fault = name === undefined ? undefined : wheelFault(name, app.version);
  if (fault !== undefined) context.fail(fault);
  if (mount !== undefined && !app.routes.some((route) => route.mount === mount))
    context.fail(
      `No route is mounted at ${JSON.stringify(mount)}; there are ${[...new Set(app.routes.map((route) => route.mount))].join(', ')}.`,
    );
  const files = filesOf(app, language, options, context);
  if (options.check === true) for (const each of files) await check(each, language, options, context);
  else
    for (const { file, content } of files)
      await replaceFile(resolve(file), content).catch((error: Error) => context.fail(unwritable(file, error)));
  const [{ file }] = files;
  if (context.json) context.print(JSON.stringify(options.check === true ? { ok: true, file } : { file, language }));
  else for (const each of files) context.print(`${each.file} ${options.check === true ? 'is current' : 'written'}.`);
}

interface GeneratedFile {
  readonly file: string;
  readonly content: Buffer;
  /** The client itself, whose methods can be compared. */
  readonly isClient: boolean;
}

function filesOf(
  app: App,
  language: ClientLanguage,
  { out, mount, dates, package: name, with: library }: ClientCommandOptions,
  context: CliContext,
): [GeneratedFile, ...GeneratedFile[]] {
  const { title, version, routes } = app;
  const options = { title, version, mount, dates };
  return expressible(context, () => {
    const text = generateClient(routes, { language, ...options });
    if (name !== undefined) {
      const { file, bytes } = pythonWheel(text, { name, version, title });
      return [{ file: join(out, file), content: bytes, isClient: false }];
    }
    const client = { file: out, content: Buffer.from(text), isClient: true };
    if (library === undefined) return [client];
    const helpers = Buffer.from(generateTanstack(routes, `./${basename(out)}`, options));
    return [client, { file: `${out.slice(0, -extname(out).length)}.tanstack${extname(out)}`, content: helpers, isClient: false }];
  });
}

async function check(
  { file, content, isClient }: GeneratedFile,
  language: ClientLanguage,
  options: ClientCommandOptions,
  context: CliContext,
): Promise<void> {
  const again = commandOf(language, options);
  const stored = await readFile(resolve(file)).catch((error: NodeJS.ErrnoException) =>
    context.fail(error.code === 'ENOENT' ? `There is no file ${file}. Write it with: ${again}` : unreadable(file, error)),
  );
  if (stored.equals(content)) return;
  const renamed = isClient ? renamedMethods(stored.toString(), content.toString(), language) : [];
  context.fail([`${file} is not the current client. Write it again with: ${again}`, ...renamed].join('\n'));
}

function commandOf(language: ClientLanguage, { out, mount, dates, package: name, with: library }: ClientCommandOptions): string {
  const flags = [
    ...(mount === undefined ? [] : [`--mount ${mount}`]),
    ...(dates === true ? ['--dates'] : []),
    ...(name === undefined ? [] : [`--package ${name}`]),
    ...(library === undefined ? [] : [`--with ${library}`]),
  ];
  return [`npx kit client ${language} --out ${out}`, ...flags].join(' ');
}

function expressible<T>(context: CliContext, generated: () => T): T {
  try {
    return generated();
  } catch (error) {
    if (error instanceof ClientRefused) return context.fail(error.message);
    throw error;
  }
}

function isLanguage(text: string): text is ClientLanguage {
  return (CLIENT_LANGUAGES as readonly string[]).includes(text);
}
