import { implementationOf, InvalidOptions } from '../../options/read-options.ts';
import type { Fault } from '../../options/fault.ts';
import { isPlainObject, wrongValue } from '../../options/value-rule.ts';
import type { Module } from './module.ts';
import { moduleRules } from './option-rules.ts';

/** Part of the names of migrations, of the log and of messages. */
const NAME = /^[a-z][a-z0-9_]{0,39}$/;

/** Registered, so that every copy of this package finds the mark of every other. */
const BUILT_WITH = Symbol.for('kit.plugin.built_with');
const THIS_COPY = import.meta.url;

const aPlugin = implementationOf<Module>('a plugin: { name: "parcels", migrations: [ … ] }', moduleRules);

/**
 * Declares a plugin: a module that others install from a package. Every member is checked here, where its author sees the message, and
 * `createApp` checks that plugins fit together: their order, and that no two of them bring the same table, command, job or error code.
 *
 * @example
 * ```ts
 * export const parcels = (options: ParcelOptions = {}) =>
 *   definePlugin({ name: 'parcels', migrations: [initial], errors: parcelErrors, middleware: [tracking(options)], onRoute, setup });
 * ```
 */
export function definePlugin(plugin: Module): Module {
  const place = 'definePlugin()';
  if (!isPlainObject(plugin)) throw new InvalidOptions([wrongValue(place, 'the plugin', plugin, 'a plain object: { name: "parcels", … }')]);
  const faults = [...aPlugin(plugin, place, 'plugin')];
  if (typeof plugin.name === 'string' && !NAME.test(plugin.name))
    faults.push(wrongValue(place, 'plugin.name', plugin.name, 'a name in snake_case of up to 40 characters, such as "parcels"'));
  if ((plugin.models?.length ?? 0) > 0 && (plugin.migrations?.length ?? 0) === 0)
    faults.push({
      id: 'E006',
      message: `${place}: the plugin "${plugin.name}" has models and no migrations, so nothing would create its tables.`,
      hint: 'Add migrations: kit migrate make writes the first one.',
    });
  if (faults.length > 0) throw new InvalidOptions(faults);
  return Object.freeze({ ...plugin, [BUILT_WITH]: THIS_COPY });
}

/** Classes and symbols of two copies differ: controllers, permissions and models of such a plugin would be unknown here. */
export function foreignCopyFaults(modules: readonly Module[]): Fault[] {
  return modules.flatMap((module): Fault[] => {
    const builtWith = (module as { readonly [BUILT_WITH]?: string })[BUILT_WITH];
    if (builtWith === undefined || builtWith === THIS_COPY) return [];
    return [
      {
        id: 'E006',
        message: `The plugin "${module.name}" uses another copy of this package (${builtWith}) than the app (${THIS_COPY}).`,
        hint: 'The plugin lists it under peerDependencies, not dependencies; then run npm dedupe.',
      },
    ];
  });
}
