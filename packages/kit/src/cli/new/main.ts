import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { interruptible } from './interruption.ts';
import { newProject } from './new-project.ts';
import { TEMPLATES, type TemplateName } from './project-files.ts';
import { ProjectRefused } from './project-refused.ts';
import { Screen } from './screen.ts';

// The program of the package behind `npm create`: this folder and the templates are all that is in it.

interface Arguments {
  readonly folder: string;
  readonly template: TemplateName;
  readonly install: boolean;
}

const packageRoot = fileURLToPath(new URL('..', import.meta.url));
const manifest = JSON.parse(readFileSync(resolve(packageRoot, 'package.json'), 'utf8')) as { version: string; toolkit: string };

const HELP = `Usage: npm create ${manifest.toolkit}@latest <folder> [-- --template minimal|full|b2b] [--no-install]

  --template  minimal (default): users, API keys and one resource
              full: a small helpdesk with tenants, roles, sharing, a job and webhooks
              b2b: a product for companies: members, invitations, keys, webhooks, pages
  --no-install  write the files only
`;

/** Undefined: help was asked for. A fault of the command line is an Error. */
function readArguments(argv: readonly string[]): Arguments | undefined {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    allowNegative: true,
    options: {
      template: { type: 'string', short: 't', default: 'minimal' },
      install: { type: 'boolean', default: true },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  const [folder, ...more] = positionals;
  if (folder === undefined) throw new Error('The folder of the new project is missing.');
  if (more.length > 0) throw new Error(`Only one folder can be created, and ${positionals.length} were given.`);
  const template = TEMPLATES.find((name) => name === values.template);
  if (template === undefined) throw new Error(`There is no template "${values.template}"; there are ${TEMPLATES.join(' and ')}.`);
  return { folder: resolve(folder), template, install: values.install };
}

/** Exit codes: 0 created, 1 not created, 2 the command line was wrong. */
export async function main(argv: readonly string[]): Promise<number> {
  const screen = new Screen(process.stderr);
  let given: Arguments | undefined;
  try {
    given = readArguments(argv);
  } catch (error) {
    process.stderr.write(`${screen.paint('red', 'error:')} ${(error as Error).message}\n\n${HELP}`);
    return 2;
  }
  if (given === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  const { folder, template, install } = given;
  try {
    const project = await interruptible((signal) =>
      newProject({
        folder,
        template,
        install,
        signal,
        templates: resolve(packageRoot, 'templates'),
        toolkit: { name: manifest.toolkit, source: () => ({ spec: `^${manifest.version}` }) },
        step: screen.step,
      }),
    );
    screen.nextSteps(project, process.cwd(), install);
    return 0;
  } catch (error) {
    if (!(error instanceof ProjectRefused)) throw error;
    process.stderr.write(`${screen.paint('red', 'error:')} ${error.message}\n`);
    return 1;
  }
}
