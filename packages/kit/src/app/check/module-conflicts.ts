import { coreErrors } from '../../errors/core-errors.ts';
import type { ErrorCatalog } from '../../errors/catalog.ts';
import type { Fault } from '../../options/fault.ts';
import type { Module } from '../declare/module.ts';

const ERROR_CODE = 'the error code';

/** Of each kind a name belongs to one module. */
const CLAIMS: readonly { readonly what: string; readonly hint: string; readonly of: (module: Module) => readonly Claim[] }[] = [
  {
    what: 'the table',
    hint: 'Begin the names of a plugin’s tables with the name of the plugin.',
    of: ({ models = [] }) => models.map((model) => ({ name: model.name, value: model })),
  },
  {
    what: 'the command',
    hint: 'Group the commands of a plugin under one name: kit parcels send.',
    of: ({ commands = [] }) => commands.map((command) => ({ name: command.name, value: command })),
  },
  {
    what: 'the job',
    hint: 'Begin the names of a plugin’s jobs with the name of the plugin: parcels.send.',
    of: ({ jobs = [] }) => jobs.map((job) => ({ name: job.name, value: job })),
  },
  {
    what: 'the seed',
    hint: 'Give one of them another name.',
    of: ({ seeds = [] }) => seeds.map((seed) => ({ name: seed.name, value: seed })),
  },
  {
    what: ERROR_CODE,
    hint: 'The statuses differ. Codes are promises to clients: begin those of a plugin with its subject, such as parcel_lost.',
    of: ({ errors = {} }) => codesOf(errors),
  },
];

interface Claim {
  readonly name: string;
  readonly value: unknown;
}

/** Modules may share a code that means the same to clients, such as quota_exceeded: its status is what programs react to. */
const codesOf = (errors: ErrorCatalog): Claim[] => Object.entries(errors).map(([name, { status }]) => ({ name, value: status }));

/** Names that two modules bring, both of them named: what the second would silently replace, or what would fail at its first use. */
export function moduleConflicts(modules: readonly Module[]): Fault[] {
  return CLAIMS.flatMap(({ what, hint, of }) => {
    const owners = new Map<string, { readonly owner: string; readonly value: unknown }>();
    if (what === ERROR_CODE) for (const { name, value } of codesOf(coreErrors)) owners.set(name, { owner: 'kit', value });
    const faults: Fault[] = [];
    for (const module of modules)
      for (const { name, value } of of(module)) {
        const known = owners.get(name);
        if (known === undefined) owners.set(name, { owner: module.name, value });
        // The same declaration in two modules is one thing that both use.
        else if (known.value !== value) faults.push(conflict(what, name, known.owner, module.name, hint));
      }
    return faults;
  });
}

function conflict(what: string, name: string, first: string, second: string, hint: string): Fault {
  const who = first === second ? `The module "${first}" brings` : `The modules "${first}" and "${second}" both bring`;
  return { id: 'E006', message: `${who} ${what} "${name}"${first === second ? ' twice' : ''}.`, hint };
}
