import { isMembers } from '../../options/value-rule.ts';
import type { Module, ResourceDeclaration } from './module.ts';
import type { AppOptions } from './options.ts';

/** The resources of an app: its own, those of its modules, and those that lists of the admin site bring along. */
export function resourcesOf({ resources = [] }: Pick<AppOptions, 'resources'>, modules: readonly Module[]): readonly ResourceDeclaration[] {
  const lists = modules.flatMap(({ admin }) => admin?.resources ?? []);
  // A value that is not a list is a fault of the plan.
  const brought = new Set(lists.flatMap((list) => (isMembers(list) && list.brings !== undefined ? [list.brings] : [])));
  return [...resources, ...modules.flatMap((module) => module.resources ?? []), ...(brought as ReadonlySet<ResourceDeclaration>)];
}
