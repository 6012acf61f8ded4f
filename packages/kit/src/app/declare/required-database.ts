import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import type { App } from './module.ts';

/**
 * The fault of a controller whose `using` is a database that the app does not have, or in which its module has no tables, for its
 * `databaseFaults`: every request would be a 500. `factory` is that of the module: `jobs`.
 */
export function requiredDatabase({ databases, modules }: App, name: string, controller: string, using: string, factory: string): Fault[] {
  const known = Object.keys(databases);
  if (!known.includes(using))
    return [
      {
        id: 'E013',
        message: `${controller}: using is "${using}", a database that the app does not have.`,
        hint: `The app has ${known.join(', ')}.${didYouMean(using, known)}`,
      },
    ];
  const module = modules.find((each) => each.name === name);
  const tables = module?.databases ?? ['default'];
  if (module === undefined || tables.includes(using)) return [];
  return [
    {
      id: 'E013',
      message: `${controller}: using is "${using}", a database where ${factory}() has no tables.`,
      hint: `Use ${factory}({ databases: ${JSON.stringify([...tables, using])} }).`,
    },
  ];
}
