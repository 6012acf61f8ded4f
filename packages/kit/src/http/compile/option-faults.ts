import { nearest } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { unknownNames } from '../../options/read-options.ts';
import { flag, listOf, oneOf, rule, text, undefinedOption, type ValueRule, wholeNumber } from '../../options/value-rule.ts';
import { isConcreteScope } from '../../permissions/scope.ts';
import { Controller, type ControllerBase, controllerOptionNames } from './controller.ts';
import { argumentOptions, controllerOptions } from '../declare/controller-options.ts';
import { isRoute, type Route } from '../declare/route.ts';

const routeOptionNames = [
  'params',
  'query',
  'headers',
  'cookies',
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
  'readFrom',
];
const streamOptionNames = [...routeOptionNames, 'method', 'heartbeatMs', 'ends'];

export function routeOptionFaults(where: string, { kind, options }: Route): Fault[] {
  return unknownNames(where, options, kind === 'stream' ? streamOptionNames : routeOptionNames);
}

type ClassLike = Function & {
  readonly [controllerOptions]?: Readonly<Record<string, ValueRule>>;
  readonly [argumentOptions]?: Readonly<Record<string, string>>;
};

/** What a controller's attributes are checked against. */
interface KnownOptions {
  /** Options that are statics: of every controller, and of this kind. */
  readonly statics: readonly string[];
  /** Of these, the options of this kind of controller, with their rules. */
  readonly own: ReadonlyMap<string, ValueRule>;
  /** Options that are arguments of a call, by name. */
  readonly calls: ReadonlyMap<string, string>;
}

/**
 * Controller options are statics, or arguments of the call that made the base class. As a bare attribute, misspelt, undefined, or with a wrong
 * value they would do nothing, or leave a guard open. Below a class that declares options of its own (ApiKeyController), every static that
 * holds data must be an option.
 */
export function controllerOptionFaults(name: string, controller: ControllerBase): Fault[] {
  const chain = classesOf(controller);
  const own = new Map(chain.flatMap((type) => Object.entries((Object.hasOwn(type, controllerOptions) && type[controllerOptions]) || {})));
  const calls = new Map(chain.flatMap((type) => Object.entries((Object.hasOwn(type, argumentOptions) && type[argumentOptions]) || {})));
  const known: KnownOptions = { statics: [...controllerOptionNames, ...own.keys()], own, calls };
  return [...attributes(name, controller, chain, known), ...statics(name, chain, known)];
}

function statics(name: string, chain: readonly ClassLike[], known: KnownOptions): Fault[] {
  const faults: Fault[] = [];
  const declaring = chain.findIndex((type) => Object.hasOwn(type, controllerOptions));
  const called = chain.findIndex((type) => Object.hasOwn(type, argumentOptions));
  for (const [index, type] of chain.entries()) {
    for (const field of Object.getOwnPropertyNames(type)) {
      if (builtInStatics.has(field)) continue;
      const value: unknown = Reflect.get(type, field);
      if (known.statics.includes(field)) {
        const rule = known.own.get(field);
        if (rule !== undefined) faults.push(...(value === undefined ? [undefinedOption(name, field)] : rule(value, name, field)));
      } else if (index < called && known.calls.has(field))
        faults.push(
          index < declaring && declaring < called
            ? notOfModule(name, field, chain[declaring] as ClassLike, known)
            : ignored(name, field, 'a static', known),
        );
      else if ((index < declaring && typeof value !== 'function') || nearest(field, known.statics) !== undefined)
        faults.push(...unknownNames(name, { [field]: null }, known.statics));
      else if (isRouteOption(field, value)) faults.push(ofRoutes(name, field));
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

/** Fields of the instance, and accessors and methods of its classes. Routes are the fields that are asked. */
function attributes(name: string, controller: ControllerBase, chain: readonly ClassLike[], known: KnownOptions): Fault[] {
  const faults: Fault[] = [];
  for (const [field, value] of Object.entries(controller)) {
    if (isRoute(value)) continue;
    // Names of options of one kind are rare enough that a similar attribute is a slip.
    const option = known.statics.includes(field) || known.calls.has(field) ? field : nearest(field, [...known.own.keys()]);
    if (option !== undefined) faults.push(ignored(name, field, 'a bare class attribute', known, option));
    else if (isRouteOption(field, value)) faults.push(ofRoutes(name, field));
  }
  const declaring = chain.findIndex((type) => Object.hasOwn(type, controllerOptions) || Object.hasOwn(type, argumentOptions));
  for (const type of declaring === -1 ? chain : chain.slice(0, declaring)) {
    const members = Object.getOwnPropertyDescriptors((type as { readonly prototype?: object }).prototype ?? {});
    for (const [field, member] of Object.entries(members)) {
      const isMethod = member.get === undefined;
      if (known.calls.has(field) || (!isMethod && known.statics.includes(field)))
        faults.push(ignored(name, field, isMethod ? 'a method' : 'a bare class attribute', known));
    }
  }
  return faults;
}

function ignored(name: string, field: string, kind: string, { calls }: KnownOptions, option = field): Fault {
  const call = calls.get(option);
  return {
    id: 'E002',
    message: `${name}: the option "${field}" is ${kind} and would be ignored.`,
    hint: call === undefined ? `Write "static readonly ${option} = …".` : `Write it in the options: ${call}.`,
  };
}

/** The call that takes the option was made by the module that the class comes from. */
function notOfModule(name: string, field: string, { name: base }: ClassLike, { own }: KnownOptions): Fault {
  const options = own.size === 0 ? '' : ` Options of ${base}: ${[...own.keys()].join(', ')}.`;
  return { id: 'E002', message: `${name}: ${base} has no option "${field}", which would be ignored.`, hint: `Remove it.${options}` };
}

/** A similar attribute of a controller's own, such as a service called `auth`, is not a value of the option. */
function isRouteOption(field: string, value: unknown): boolean {
  const rule = Object.hasOwn(groupedRouteOptions, field) ? groupedRouteOptions[field] : undefined;
  return rule !== undefined && rule(value, '', '').length === 0;
}

function ofRoutes(name: string, field: string): Fault {
  return {
    id: 'E002',
    message: `${name}: "${field}" is an option of routes; on the controller it would be ignored.`,
    hint: `Write it in each route: list = route.get('/', { ${field}: …, … }).`,
  };
}

/** Options of a route that somebody may expect to hold for all routes of a class. */
const groupedRouteOptions: Readonly<Record<string, ValueRule>> = {
  scope: rule('a scope', (value) => typeof value === 'string' && isConcreteScope(value)),
  auth: listOf(text, { min: 1 }),
  csrf: flag,
  throttled: flag,
  atomic: flag,
  idempotent: oneOf(true, false, 'optional', 'required'),
  etag: oneOf(true, 'required'),
  timeoutMs: wholeNumber(1),
  bodyBytesMax: wholeNumber(1),
  hidden: flag,
};

const builtInStatics: ReadonlySet<string> = new Set(['length', 'name', 'prototype']);
