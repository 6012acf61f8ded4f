import type { Fault } from '../../options/fault.ts';
import type { App } from './module.ts';

/** The fault of a controller whose changes are recorded by its module, in a database where audit() has no tables, for its `databaseFaults`. */
export function requiredAudit({ registry: { audit } }: App, controller: string, using: string): Fault[] {
  if (audit?.databases?.includes(using) !== false) return [];
  return [
    {
      id: 'E013',
      message: `${controller}: using is "${using}", a database where audit() has no tables: no change could be saved.`,
      hint: `Use audit({ databases: ${JSON.stringify([...audit.databases, using])} }).`,
    },
  ];
}
