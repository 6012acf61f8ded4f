import { modulesIn } from '../../app/data/migration-modules.ts';
import type { App } from '../../app/declare/module.ts';
import type { Model } from '../../db/declare/model.ts';
import type { SubjectKind, SubjectPath } from '../../db/subjects/subject.ts';
import { aliasesOf, subjectPlans } from './subject-plans.ts';

/** What the app says about the data of a table: `kit inspect` and the admin site show it. */
export interface TableData {
  readonly table: string;
  /** The alias of the database. */
  readonly using: string;
  /** Encrypted columns; `search`: rows are found by the value. */
  readonly encrypted: readonly { readonly column: string; readonly search: boolean }[];
  /** Columns that describe a person. */
  readonly personal: readonly string[];
  /** How the rows of a person and of a tenant are found, and what an erasure does to them. Empty: they belong to nobody. */
  readonly person: readonly string[];
  readonly tenant: readonly string[];
  /** `deleted 24 months after created_at`. */
  readonly retention: string | null;
}

/** Of every table. Needs no database. */
export function describeData(app: App): TableData[] {
  const plans = { person: subjectPlans(app, 'person'), tenant: subjectPlans(app, 'tenant') };
  const pathsOf = (kind: SubjectKind, using: string, model: Model): readonly SubjectPath[] =>
    plans[kind].find((plan) => plan.using === using)?.plan.tables.find((table) => table.model === model)?.paths ?? [];
  return aliasesOf(app).flatMap((using) =>
    modulesIn(app, using)
      .flatMap((module) => module.models ?? [])
      .map((model) => ({
        table: model.name,
        using,
        encrypted: Object.entries(model.columns).flatMap(([column, { settings }]) =>
          settings.encrypted === undefined ? [] : [{ column, search: settings.encrypted.search !== undefined }],
        ),
        personal: Object.entries(model.columns).flatMap(([column, { settings }]) => (settings.personal === undefined ? [] : [column])),
        person: pathsOf('person', using, model).map(pathText),
        tenant: pathsOf('tenant', using, model).map(pathText),
        retention: retentionText(model),
      })),
  );
}

const ERASING: Readonly<Record<SubjectPath['erase'], string>> = {
  delete: 'deleted',
  anonymise: 'anonymised',
  unlink: 'unlinked',
  keep: 'erased by its module',
};

/** `owner_id: deleted`, `order_id of orders: deleted`. */
function pathText({ column, erase, through }: SubjectPath): string {
  return `${column}${through === null ? '' : ` of ${through.table.model.name}`}: ${ERASING[erase]}`;
}

function retentionText({ retention }: Model): string | null {
  return retention === undefined ? null : `${ERASING[retention.then]} ${retention.after} after ${retention.by}`;
}
