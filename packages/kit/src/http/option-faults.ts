import { nearest } from '../options/did-you-mean.ts';
import type { Fault } from '../options/fault.ts';
import { unknownNames } from '../options/read-options.ts';
import type { ValueRule } from '../options/value-rule.ts';
import { Controller, type ControllerBase, controllerOptionNames } from './controller.ts';
import { controllerOptions } from './controller-options.ts';
import { isRoute, type Route } from './route.ts';

const routeOptionNames = [
  'params',
  'query',
  'headers',
  'body',
  'response',
  'validate',
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
  'throttled',
  'bodyBytesMax',
  'operationId',
  'timeoutMs',
  'hidden',
  'tool',
  'responses',
  'metadata',
  'atomic',
  'idempotent',
  'etag',
];
const streamOptionNames = [...routeOptionNames, 'method', 'heartbeatMs'];

export function routeOptionFaults(where: string, { kind, options }: Route): Fault[] {
  return unknownNames(where, options, kind === 'stream' ? streamOptionNames : routeOptionNames);
}

type ClassLike = Function & { readonly [controllerOptions]?: Readonly<Record<string, ValueRule>> };

/**
 * Controller options are statics. As a bare attribute, misspelt, or with a wrong value they would do nothing, or leave a guard open.
 * Below a class that declares options of its own (ApiKeyController), every static that holds data must be an option.
 */
export function controllerOptionFaults(name: string, controller: ControllerBase): Fault[] {
  const chain = classesOf(controller);
  const own = new Map(chain.flatMap((type) => Object.entries((Object.hasOwn(type, controllerOptions) && type[controllerOptions]) || {})));
  const known = [...controllerOptionNames, ...own.keys()];
  const faults = bareAttributes(name, controller, known, [...own.keys()]);
  const declaring = chain.findIndex((type) => Object.hasOwn(type, controllerOptions));
  for (const [index, type] of chain.entries()) {
    for (const field of Object.getOwnPropertyNames(type)) {
      if (builtInStatics.has(field)) continue;
      const value: unknown = Reflect.get(type, field);
      if (known.includes(field)) {
        const rule = own.get(field);
        if (rule !== undefined && value !== undefined) faults.push(...rule(value, name, field));
      } else if ((index < declaring && typeof value !== 'function') || nearest(field, known) !== undefined) {
        faults.push(...unknownNames(name, { [field]: null }, known));
      }
    }
  }
  return faults;
}

/** The controller's class first, `Controller` left out. */
function classesOf(controller: ControllerBase): ClassLike[] {
  const chain: ClassLike[] = [];
  let type = controller.constructor as ClassLike;
  while (typeof type === 'function' && type !== Function.prototype && type !== (Controller as unknown)) {
    chain.push(type);
    type = Object.getPrototypeOf(type) as ClassLike;
  }
  return chain;
}

/** `declared`: options of the controller's own, whose names are rare enough that a similar attribute is a slip. */
function bareAttributes(name: string, controller: ControllerBase, known: readonly string[], declared: readonly string[]): Fault[] {
  return Object.entries(controller).flatMap(([field, value]) => {
    const option = known.includes(field) ? field : nearest(field, declared);
    if (isRoute(value) || option === undefined) return [];
    return [
      {
        id: 'E002',
        message: `${name}: the option "${field}" is a bare class attribute and would be ignored.`,
        hint: `Write "static readonly ${option} = …".`,
      },
    ];
  });
}

const builtInStatics: ReadonlySet<string> = new Set(['length', 'name', 'prototype']);
