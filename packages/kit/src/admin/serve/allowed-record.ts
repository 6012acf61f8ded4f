import { createHash } from 'node:crypto';
import type { AdminResource } from '../../app/admin/declaration.ts';
import type { AdminFieldChange, AdminRecord, AdminSection } from '../../app/admin/sections.ts';
import type { AdminField } from '../../app/admin/shapes.ts';
import { canonicalJson } from '../../db/values/canonical-json.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { AdminRole } from '../options.ts';
import { refusalOf, type StaffOperation } from '../staff/staff-roles.ts';
import type { AdminSite } from '../state/admin-site.ts';
import { readOnlyRefusal, type SiteAccess } from '../state/site-kind.ts';

type Form = NonNullable<AdminRecord['form']>;

/** What a form without a version was made from: another one now means that somebody changed the record. */
function tagOf(values: Readonly<Record<string, unknown>>): string {
  return createHash('sha256').update(canonicalJson(values)).digest('base64url').slice(0, TAG_LENGTH);
}

/** 162 bits, and longer than any version. */
const TAG_LENGTH = 27;

/** The version that a form was sent with, which its resource compares: `"3"`. A form without versions is compared here, by its values. */
export function versionSent(header: string | undefined, { values }: Form): number | null {
  const found = /^"(\d{1,15})"$/.exec(header ?? '');
  if (found !== null) return Number(found[1]);
  if (header !== undefined && header !== `"${tagOf(values)}"`) throw coreErrors.precondition_failed();
  return null;
}

/** The record without what the role may not do, and why not. */
export function allowedRecord(
  site: AdminSite,
  { role, access }: { readonly role: AdminRole; readonly access: SiteAccess | undefined },
  resource: AdminResource,
  { form, ...record }: AdminRecord,
): AdminRecord {
  const refusal = (operation: StaffOperation): string | undefined =>
    refusalOf(site.settings, role, resource, operation) ?? readOnlyRefusal(access, operation) ?? undefined;
  const noUpdate = refusal('update');
  const noRemoval = refusal('remove');
  const refused = {
    ...record.refused,
    ...(form === undefined || noUpdate === undefined ? {} : { edit: noUpdate }),
    ...(!record.removable || noRemoval === undefined ? {} : { remove: noRemoval }),
  };
  return {
    ...record,
    ...(form === undefined || noUpdate !== undefined
      ? {}
      : {
          form: {
            ...form,
            fields: site.drawn(resource, form.fields).map((field) => site.resolved(role, field)),
            tag: form.version === undefined ? tagOf(form.values) : String(form.version),
          },
        }),
    removable: record.removable && noRemoval === undefined,
    ...(Object.keys(refused).length === 0 ? {} : { refused }),
    sections: record.sections
      .map((section) => allowedSection(site, role, section))
      .map((section) => withRestorable(section, resource, noUpdate === undefined ? form : undefined)),
  };
}

/** A section whose buttons say why the role may not use them. */
function allowedSection(site: AdminSite, role: AdminRole, section: AdminSection): AdminSection {
  if (section.kind !== 'table' || (section.adds === undefined && section.removes === undefined)) return section;
  const { adds, removes, ...rest } = section;
  const refused = (other: string, operation: StaffOperation): { readonly refused?: string } => {
    const reason = refusalOf(site.settings, role, site.resource(other), operation);
    return reason === null ? {} : { refused: reason };
  };
  return {
    ...rest,
    ...(adds === undefined
      ? {}
      : { adds: { ...adds, fields: adds.fields.map((field) => site.resolved(role, field)), ...refused(adds.resource, 'create') } }),
    ...(removes === undefined ? {} : { removes: { ...removes, ...refused(removes.resource, 'remove') } }),
  };
}

/** The timeline without values that this staff member cannot bring back: only those of a field in the form, which differ from it. */
function withRestorable(section: AdminSection, { shows, hasOwnForm }: AdminResource, form: AdminRecord['form']): AdminSection {
  if (section.kind !== 'timeline') return section;
  const isRestorable = ({ name, restore }: AdminFieldChange): boolean => {
    const field = form?.fields.find((each) => each.name === name);
    if (shows === undefined || hasOwnForm === true || form === undefined || field === undefined || restore === undefined) return false;
    return isOpenKind(field) && canonicalJson(form.values[name] ?? null) !== canonicalJson(restore ?? null);
  };
  const changed = (change: AdminFieldChange): AdminFieldChange => {
    const { restore: _, ...rest } = change;
    return isRestorable(change) ? change : rest;
  };
  return {
    ...section,
    entries: section.entries.map(({ changes, ...entry }) => (changes === undefined ? entry : { ...entry, changes: changes.map(changed) })),
  };
}

function isOpenKind({ kind, sensitive, refused }: AdminField): boolean {
  return refused === undefined && kind !== 'password' && kind !== 'file' && sensitive !== true;
}
