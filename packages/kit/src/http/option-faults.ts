import { controllerOptionNames, type Controller } from './controller.ts';
import { didYouMean, nearest } from './did-you-mean.ts';
import type { Fault } from './fault.ts';
import { isRoute, type Route } from './route.ts';

const routeOptionNames = [
  'params',
  'query',
  'headers',
  'body',
  'response',
  'permission',
  'scope',
  'status',
  'throttles',
  'errors',
  'raises',
  'summary',
  'description',
  'deprecated',
  'auth',
  'tags',
  'csrf',
  'bodyBytesMax',
  'operationId',
  'timeoutMs',
  'hidden',
  'responses',
  'metadata',
];
const streamOptionNames = [...routeOptionNames, 'method', 'heartbeatMs'];

/** Options nobody reads would be silently ignored; every one of them is a fault. */
export function unknownOptions(where: string, given: object, known: readonly string[]): Fault[] {
  return Object.keys(given)
    .filter((name) => !known.includes(name))
    .map((name) => ({
      id: 'E001',
      message: `${where}: unknown option "${name}".`,
      hint: didYouMean(name, known).trim() || `Known: ${known.join(', ')}.`,
    }));
}

export function routeOptionFaults(where: string, { kind, options }: Route): Fault[] {
  return unknownOptions(where, options, kind === 'stream' ? streamOptionNames : routeOptionNames);
}

/** Controller options live on the class. On the instance, or misspelt, they would do nothing. */
export function controllerOptionFaults(name: string, controller: Controller): Fault[] {
  const faults: Fault[] = [];
  for (const [field, value] of Object.entries(controller)) {
    if (isRoute(value)) continue;
    const option = controllerOptionNames.find((each) => each === field);
    if (option !== undefined) {
      faults.push({
        id: 'E002',
        message: `${name}: the option "${field}" is a bare class attribute and would be ignored.`,
        hint: `Write "static readonly ${field} = …".`,
      });
    }
  }
  for (
    let type = controller.constructor;
    typeof type === 'function' && type !== Function.prototype;
    type = Object.getPrototypeOf(type) as typeof type
  ) {
    for (const field of Object.getOwnPropertyNames(type)) {
      if (builtInStatics.has(field) || controllerOptionNames.some((each) => each === field)) continue;
      const meant = nearest(field, controllerOptionNames);
      if (meant !== undefined)
        faults.push({ id: 'E001', message: `${name}: unknown controller option "${field}".`, hint: `Did you mean "${meant}"?` });
    }
  }
  return faults;
}

const builtInStatics: ReadonlySet<string> = new Set(['length', 'name', 'prototype']);
