import type { User, UserDirectory } from '../src/auth/index.ts';
import { type Database, type Db, migrate } from '../src/db/index.ts';
import { apiKeyMigrations } from '../src/contrib/apikeys/migrations/all.ts';

/** Users that are not the toolkit's: another table, other column names, keys that are no UUIDs. */
export const people: UserDirectory = {
  table: {
    name: 'people',
    id: 'person_no',
    username: 'handle',
    email: 'mail',
    isActive: 'enabled',
    isStaff: 'staff',
    isSuperuser: 'root',
    idType: 'text',
  },
  findById: (db, id) => findPerson(db, 'person_no', id),
  findByLogin: (db, login) => findPerson(db, 'handle', login),
};

async function findPerson(db: Db, column: string, value: string): Promise<User | null> {
  const [user] = await db.query<User>(
    `select person_no as id, handle as username, mail as email, enabled as is_active, staff as is_staff, root as is_superuser
     from people where ${column} = $1`,
    [value],
  );
  return user ?? null;
}

/** Their table. */
export const PEOPLE_TABLE =
  'create table people (person_no text primary key, handle text, mail text, enabled boolean not null, staff boolean not null, root boolean not null)';

/** The tables of keys and people, and two people: ada and bob. */
export async function preparePeopleAndKeys(db: Database): Promise<void> {
  await migrate(db, [{ name: 'apikeys', migrations: apiKeyMigrations }]);
  await db.query(PEOPLE_TABLE);
  await addPerson(db, 'ada');
  await addPerson(db, 'bob');
}

export async function addPerson(db: Db, handle: string, staff = false): Promise<User> {
  await db.query('insert into people values ($1, $2, $3, $4, $5, $6)', [`no-${handle}`, handle, null, true, staff, false]);
  return { id: `no-${handle}`, username: handle, email: null, is_active: true, is_staff: staff, is_superuser: false };
}

export async function setEnabled(db: Db, handle: string, enabled: boolean): Promise<void> {
  await db.query('update people set enabled = $2 where handle = $1', [handle, enabled]);
}
