import type { Fault } from '../../options/fault.ts';
import type { App } from './module.ts';

/** The fault of a controller that is mounted without its module, for its `faults`: it would answer every request with a 500. */
export function requiredModule({ modules }: App, name: string, controller: string, factory: string): Fault[] {
  if (modules.some((module) => module.name === name)) return [];
  return [{ id: 'E006', message: `${controller} is mounted without its module.`, hint: `Add ${factory} to the modules of createApp.` }];
}
