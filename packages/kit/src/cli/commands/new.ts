import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Option } from 'commander';
import type { CoreCommand } from '../load/core-command.ts';
import { interruptible } from '../new/interruption.ts';
import { newProject } from '../new/new-project.ts';
import { TEMPLATES, type TemplateName } from '../new/project-files.ts';
import { Screen } from '../new/screen.ts';
import { toolkitOf } from '../new/toolkit-source.ts';

const packageRoot = fileURLToPath(new URL('../../..', import.meta.url));

export const newCommand: CoreCommand = (command, context) => {
  command
    .argument('<folder>', 'where to create it; its last part is the name of the project')
    .addOption(new Option('-t, --template <name>', 'what is in it').choices(TEMPLATES).default('minimal'))
    .option('--no-install', 'write the files only')
    .addHelpText('after', HELP)
    .action(async (given: string, { template, install }: { template: TemplateName; install: boolean }) => {
      const folder = resolve(context.cwd, given);
      const screen = new Screen(context.terminal.stderr);
      const project = await interruptible((signal) =>
        newProject({
          folder,
          template,
          install,
          signal,
          templates: resolve(packageRoot, 'templates'),
          toolkit: toolkitOf(packageRoot),
          step: context.json ? (_, work) => work() : screen.step,
        }),
      );
      if (context.json) context.print(JSON.stringify({ ...project, template, installed: install }));
      else screen.nextSteps(project, context.cwd, install);
    });
};

const HELP = `
Templates:
  minimal  users, API keys and one resource, on SQLite
  full     a small helpdesk: tenants, roles, sharing, a job, webhooks, the admin site
  b2b      a product for companies: tenants with members and invitations, their keys and webhooks, pages, tools for agents
All have tests, a Dockerfile, a compose file with PostgreSQL, a CI workflow and a tsconfig. When something goes wrong, nothing is left behind.`;
