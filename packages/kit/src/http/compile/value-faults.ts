import type { Fault } from '../../options/fault.ts';
import { implementationOf, objectOf, valueFaults } from '../../options/read-options.ts';
import {
  aFunction,
  anything,
  filledText,
  flag,
  guard,
  guards,
  isMembers,
  listOf,
  milliseconds,
  objectWith,
  oneOf,
  recordOf,
  required,
  rule,
  text,
  type ValueRule,
  wholeNumber,
  wrongValue,
} from '../../options/value-rule.ts';
import type { Throttle } from '../../throttle/throttle.ts';
import { atomicRule, idempotentRule } from '../declare/idempotent-options.ts';
import type { MiddlewareDocument } from '../exchange/compiled-route.ts';
import type { Middleware } from '../exchange/middleware.ts';
import type { Deprecation, Route, ToolFacts } from '../declare/route.ts';

/** The names that the Model Context Protocol allows. */
export const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** `clientThrottle` where `clientThrottle("10/min")` is meant would never throttle anything. */
export const throttle = implementationOf<Throttle>('a throttle, such as clientThrottle("10/min")', {
  name: required(filledText),
  phase: required(oneOf('client', 'principal')),
  key: required(aFunction),
  rate: required(aFunction),
  fault: aFunction,
});

export const middleware = implementationOf<Middleware>('middleware, such as securityHeaders()', {
  name: required(filledText),
  appliesTo: aFunction,
  onRequest: aFunction,
  onAdmitted: aFunction,
  handle: aFunction,
  onResponse: aFunction,
  onFinish: aFunction,
  onBody: aFunction,
  responseFacts: aFunction,
  respond: aFunction,
  documents: objectOf<MiddlewareDocument>({ headers: recordOf(anything), responseHeaders: recordOf(text), raises: listOf(anything) }),
  within: aFunction,
  onQuery: aFunction,
});

export const errorMap = objectWith('an error map: errors().on(…)', 'translate', 'ruleFor');

const dateOrText = rule('a date such as "2026-06-30"', (value) =>
  typeof value === 'string' || value instanceof Date ? !Number.isNaN(new Date(value).getTime()) : false,
);
const announcement = objectOf<Deprecation>({ since: required(dateOrText), sunset: dateOrText, link: text });
const deprecation: ValueRule = (value, place, name) => {
  if (typeof value === 'boolean') return [];
  return isMembers(value) ? announcement(value, place, name) : [wrongValue(place, name, value, 'true or { since: "2026-06-30" }')];
};

const toolName = rule(
  'a name of 1 to 128 letters, digits, "_", "." and "-"',
  (value) => typeof value === 'string' && TOOL_NAME.test(value),
);
const toolFacts = objectOf<ToolFacts>({
  name: toolName,
  description: filledText,
  arguments: recordOf(toolName),
  destructive: rule('true, or leave it out', (value) => value === true),
  confirm: rule('true, or leave it out', (value) => value === true),
});
const tool: ValueRule = (value, place, name) => {
  if (typeof value === 'boolean') return [];
  return isMembers(value) ? toolFacts(value, place, name) : [wrongValue(place, name, value, 'true, false or { name, description }')];
};

/** What opens a route, or undoes what it promises, where it is missing. `permission` is checked when the route is compiled. */
export const routeGuards = guards({
  scope: text,
  auth: listOf(text),
  throttles: listOf(throttle),
  validate: aFunction,
  atomic: atomicRule,
  idempotent: idempotentRule,
  // Its values are checked with what they need of the route.
  etag: anything,
});

const routeRules: Readonly<Record<string, ValueRule>> = {
  ...routeGuards,
  status: wholeNumber(200, 599),
  errors: errorMap,
  summary: text,
  description: text,
  deprecated: deprecation,
  csrf: rule('false, or leave it out', (value) => value === false),
  throttled: rule('false, or leave it out', (value) => value === false),
  bodyBytesMax: wholeNumber(1),
  operationId: filledText,
  timeoutMs: milliseconds(0),
  readFrom: filledText,
  heartbeatMs: milliseconds(1),
  ends: rule('true, or leave it out', (value) => value === true),
  hidden: flag,
  tool,
  metadata: objectWith('an object'),
  tags: listOf(text),
  raises: listOf(rule('an error definition or an error class', (value) => typeof value === 'function')),
};

/** What a route was given that cannot be used. Found at the first request it would be a 500, or silently nothing. */
export function routeValueFaults(where: string, { options, handler }: Route): Fault[] {
  const faults: Fault[] = [];
  if (typeof handler !== 'function')
    faults.push({ id: 'E008', message: `${where}: has no handler.`, hint: 'It is the last argument: route.get(path, options, handler).' });
  if (!isMembers(options)) {
    faults.push({
      id: 'E008',
      message: `${where}: has no options.`,
      hint: 'Say at least who may: route.get(path, { permission: … }, handler).',
    });
    return faults;
  }
  return [...faults, ...valueFaults(where, options, routeRules)];
}

const groupRules: Readonly<Record<string, ValueRule>> = {
  permission: guard(anything),
  throttles: guard(listOf(throttle)),
  middleware: guard(listOf(middleware)),
  errors: errorMap,
  tags: listOf(text),
  deprecated: deprecation,
  description: text,
};

/** The same for what a controller or a version mount says for all its routes. */
export function groupValueFaults(where: string, group: object): Fault[] {
  const own = Object.keys(groupRules).filter((name) => Object.hasOwn(group, name));
  return valueFaults(where, Object.fromEntries(own.map((name) => [name, Reflect.get(group, name)])), groupRules);
}

/** The items that can be used; what cannot, or a value that is no list, becomes a fault. */
export function usableItems(where: string, name: string, given: unknown, item: ValueRule, faults: Fault[]): readonly unknown[] {
  if (given === undefined) return [];
  if (!Array.isArray(given)) {
    faults.push(wrongValue(where, name, given, 'a list: [ … ]'));
    return [];
  }
  return given.filter((each: unknown, index) => {
    const found = item(each, where, `${name}[${index}]`);
    faults.push(...found);
    return found.length === 0;
  });
}
