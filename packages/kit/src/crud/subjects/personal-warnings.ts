import { isSilenced } from '../../app/check/silenced-checks.ts';
import { toolkitModules } from '../../app/data/toolkit-modules.ts';
import type { App } from '../../app/declare/module.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Fault } from '../../options/fault.ts';
import { declaredScopes, subjectPlans } from './subject-plans.ts';

/** Words in the names of columns that describe a person. */
const PERSONAL =
  /(^|_)(email|e_mail|phone|mobile|fax|first_name|last_name|full_name|surname|given_name|family_name|birthday|birth_date|date_of_birth|street|postal_code|zip_code|postcode|iban|ssn|passport|ip_address|gender)($|_)/;

/** W040 to W042: what the models of the application leave open about people. */
export function personalWarnings(app: App): Fault[] {
  const own = app.modules.filter(({ name }) => !toolkitModules.has(name)).flatMap(({ models = [] }) => models);
  return [...ownerWarnings(app, own), ...refusalWarnings(app, own), ...nameWarnings(own), ...retentionWarnings(app)].filter(
    ({ id }) => isSilenced(app, id) === undefined,
  );
}

function ownerWarnings(app: App, own: readonly Model[]): Fault[] {
  const warnings = declaredScopes(app).flatMap(({ model, owner }): [string, Fault][] => {
    const settings = owner === undefined ? undefined : model.columns[owner]?.settings;
    if (owner === undefined || settings === undefined || settings.person !== undefined || !own.includes(model)) return [];
    if (settings.reference?.onDelete === 'cascade' && settings.reference.isConstrained !== false) return [];
    const message = `"${model.name}.${owner}" is the owner of the rows, and the model does not say what erasing a person does to them.`;
    return [[model.name, { id: 'W040', message, hint: "Say .person(), or .person({ erase: 'anonymise' })." }]];
  });
  return [...new Map(warnings).values()];
}

/** Rows that keep those of a person from being deleted; the owners above say more. */
function refusalWarnings(app: App, own: readonly Model[]): Fault[] {
  const faults = [...new Set(subjectPlans(app, 'person').flatMap(({ plan }) => plan.faults))];
  const owners = new Set(declaredScopes(app).map(({ model, owner }) => `rows of "${model.name}" refer to rows of "users" with "${owner}"`));
  return faults
    .filter((fault) => own.some(({ name }) => fault.includes(`"${name}`)) && ![...owners].some((owner) => fault.startsWith(owner)))
    .map((fault) => ({ id: 'W040', message: `A person cannot be erased: ${fault}.` }));
}

function retentionWarnings({ modules }: App): Fault[] {
  const tables = modules.flatMap(({ models = [] }) =>
    models.flatMap(({ name, retention }) => (retention === undefined ? [] : [`"${name}"`])),
  );
  if (tables.length === 0 || modules.some(({ name }) => name === 'personal')) return [];
  const message = `${tables.join(', ')} ${tables.length === 1 ? 'has' : 'have'} a retention, and nothing applies it.`;
  return [{ id: 'W042', message, hint: 'Add personalData() to the modules, or run npx kit retention run by a schedule.' }];
}

function nameWarnings(own: readonly Model[]): Fault[] {
  return own.flatMap((model) => {
    const names = Object.entries(model.columns).flatMap(([name, { settings }]) =>
      PERSONAL.test(name) && settings.personal === undefined && settings.person === undefined && settings.searchOf === undefined
        ? [name]
        : [],
    );
    if (names.length === 0) return [];
    const columns = names.map((name) => `"${name}"`).join(', ');
    return [
      {
        id: 'W041',
        message: `${names.length === 1 ? 'The column' : 'The columns'} ${columns} of "${model.name}" ${names.length === 1 ? 'looks' : 'look'} personal and ${names.length === 1 ? 'says' : 'say'} nothing.`,
        hint: 'Mark what describes a person with .personal().',
      },
    ];
  });
}
