import type { AdminAction, AdminResource } from '../../app/admin/declaration.ts';
import type { AdminField } from '../../app/admin/shapes.ts';
import { toolkitModules } from '../../app/data/toolkit-modules.ts';
import type { Check } from '../../app/declare/check.ts';
import type { App } from '../../app/declare/module.ts';
import type { Model } from '../../db/declare/model.ts';
import { policiesOf } from '../../crud/policy/policies.ts';
import { isResource, STAFF } from '../../crud/declare/resource.ts';
import { isStandIn } from '../../crud/policy/stand-in.ts';
import type { Fault } from '../../options/fault.ts';
import { implementationOf, type OptionRules } from '../../options/read-options.ts';
import { aFunction, anything, filledText, flag, listOf, oneOf, required } from '../../options/value-rule.ts';

const NAME = /^[a-z0-9]+(?:[-_][a-z0-9]+)*$/;

const actionRules: OptionRules<AdminAction> = {
  name: required(filledText),
  label: required(anything),
  tone: required(oneOf('neutral', 'bad')),
  on: required(oneOf('record', 'selection')),
  run: required(aFunction),
  confirm: anything,
  confirmLabel: filledText,
  dismissLabel: filledText,
  fields: listOf(anything),
  sets: flag,
  reason: oneOf('optional', 'required'),
  needs: oneOf('create', 'update', 'remove'),
  preview: aFunction,
  dryRun: filledText,
  validate: aFunction,
};
/** A misspelt `needs` or `reason` would leave an action to more people, or without its reason. */
const action = implementationOf<AdminAction>('an action: { name, label, tone, on, run }', actionRules);

/** What can be wrong with declarations, found before the first request. */
export function resourceFaults(resources: readonly AdminResource[]): Fault[] {
  const faults = resources.flatMap(faultsOf);
  for (const name of repeated(resources.map((resource) => resource.name)))
    faults.push({ id: 'E003', message: `Two lists of the admin site are named "${name}".`, hint: 'Give one of them another name.' });
  return faults;
}

/** A model whose rows have rules is shown by these rules: else the site would be a second way to change its rows. */
export function sourceFaults(resources: readonly AdminResource[], app: App): Fault[] {
  const policies = policiesOf(app);
  return resources.flatMap(({ name, shows }): Fault[] => {
    if (!isResource(shows)) return [];
    if (!isStandIn(shows))
      return policies.has(shows)
        ? []
        : [
            {
              id: 'E011',
              message: `admin resource "${name}": the resource "${shows.name}" is not part of this app.`,
              hint: 'Mount its controller, or give it to createApp({ resources }).',
            },
          ];
    const declared = policies.find(shows.model as Model, STAFF);
    return declared === undefined || policies.has(shows)
      ? []
      : [
          {
            id: 'E011',
            message: `admin resource "${name}": its model has the resource "${declared.name}", whose rules would not hold here.`,
            hint: 'Give the resource itself: modelResource(resource, …).',
          },
        ];
  });
}

/** People see the id of a record everywhere where nothing else names it. The toolkit's own lists are not the application's to change. */
export function namelessRecords(site: { readonly resources: Iterable<AdminResource> }): Check<App> {
  return {
    name: 'nameless-records',
    run({ modules }) {
      const own = modules.flatMap(({ name, admin }) => (toolkitModules.has(name) ? [] : (admin?.resources ?? [])));
      const names = new Set(own.map(({ name }) => name));
      return [...site.resources]
        .filter(({ name, isNamedById }) => isNamedById === true && names.has(name))
        .map(({ name, label }) => ({
          id: 'W043',
          message: `The list "${name}" of the admin site shows the id of a record as its name.`,
          hint: `Give the screen of ${label} a title: \`title: 'reference'\` for a text column, or a cell that makes one.`,
        }));
    },
  };
}

function faultsOf(resource: AdminResource): Fault[] {
  const where = `admin resource "${resource.name}"`;
  const faults: string[] = [];
  if (!NAME.test(resource.name)) faults.push('its name is part of addresses: use lower case letters, digits and "-".');
  const named: readonly (readonly [string, readonly { readonly name: string }[]])[] = [
    ['columns', resource.columns],
    ['filters', resource.filters],
    ['actions', resource.actions],
    ['fields', 'fields' in resource.creation ? resource.creation.fields : []],
    ...resource.actions.map(({ name, fields }) => [`fields of "${name}"`, fields ?? []] as const),
  ];
  for (const [kind, list] of named) {
    for (const name of repeated(list.map((each) => each.name))) faults.push(`two of its ${kind} are named "${name}".`);
  }
  if ('fields' in resource.creation !== (resource.create !== undefined))
    faults.push('`creation.fields` and the function `create` belong together.');
  if (resource.editable !== (resource.update !== undefined)) faults.push('`editable` and the function `update` belong together.');
  if (resource.removable !== (resource.remove !== undefined)) faults.push('`removable` and the function `remove` belong together.');
  if ((resource.exports === undefined) !== (resource.exportRows === undefined))
    faults.push('`exports` and the function `exportRows` belong together.');
  if ((resource.imports === undefined) !== (resource.importRows === undefined))
    faults.push('`imports` and the function `importRows` belong together.');
  for (const { label, action: name } of resource.shortcuts ?? [])
    if (name !== undefined && !resource.actions.some((each) => each.name === name && each.on === 'selection'))
      faults.push(`the shortcut "${label}" needs an action "${name}" on a selection.`);
  const fields = [
    ...('fields' in resource.creation ? resource.creation.fields : []),
    ...resource.actions.flatMap((each) => each.fields ?? []),
  ];
  for (const field of fields.filter(lacksChoices)) faults.push(`the field "${field.name}" is a select without choices.`);
  return [
    ...faults.map((fault) => ({ id: 'E011', message: `${where}: ${fault}` })),
    ...resource.actions.flatMap((each, index) => action(each, where, `actions[${index}]`)),
  ];
}

function lacksChoices({ kind, choices }: AdminField): boolean {
  return kind === 'select' && choices === undefined;
}

function repeated(names: readonly string[]): string[] {
  return [...new Set(names.filter((name, index) => names.indexOf(name) !== index))];
}
