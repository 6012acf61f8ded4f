import { columnTypes } from '../../../auth/people/user-table.ts';
import type { Db } from '../../../db/engine/db.ts';

/** Columns without which a table "user" is another application's. */
const OF_BETTER_AUTH = ['id', 'name', 'email', 'emailVerified', 'createdAt', 'updatedAt'];

type AddedColumns = Readonly<Record<string, Readonly<Record<string, 'text' | 'boolean' | 'time'>>>>;

/** Columns of plugins that the module reads, whether or not the instance has used the plugin. */
export const READ: AddedColumns = {
  user: { role: 'text', banned: 'boolean', banReason: 'text', banExpires: 'time' },
  session: { activeOrganizationId: 'text', impersonatedBy: 'text' },
};

const TYPES = {
  sqlite: { text: 'text', boolean: 'integer', time: 'date' },
  postgres: { text: 'text', boolean: 'boolean', time: 'timestamptz' },
} as const;

/** Before the tables: those of a team that has used better-auth already stay as they are. Throws where they cannot be used. */
export async function checkExistingTables(tx: Db): Promise<void> {
  const users = await columnTypes(tx, 'user');
  const missing = users === undefined ? [] : OF_BETTER_AUTH.filter((name) => !users.has(name));
  if (missing.length > 0)
    throw new Error(
      `better-auth: the table "user" exists, but it is not a table of better-auth: it has no ${missing.join(', ')}. Rename that table, or use another database.`,
    );
  if ((await columnTypes(tx, 'member')) === undefined) return;
  const [twice] = await tx.query<{ organization: string; person: string }>(
    'select "organizationId" as organization, "userId" as person from "member" group by "organizationId", "userId" having count(*) > 1 limit 1',
  );
  if (twice !== undefined)
    throw new Error(
      `better-auth: the user ${twice.person} is a member of the organization ${twice.organization} twice. Delete the rows of "member" that are too many, then migrate again.`,
    );
}

/** After the tables: adds what existing ones lack. What the plugins of the instance need beyond this is reported when the app starts. */
export async function addMissingColumns(tx: Db, added: AddedColumns): Promise<void> {
  for (const [table, columns] of Object.entries(added)) {
    const found = await columnTypes(tx, table);
    for (const [name, type] of Object.entries(columns))
      if (found?.has(name) === false) await tx.query(`alter table "${table}" add column "${name}" ${TYPES[tx.dialect][type]}`);
  }
}
