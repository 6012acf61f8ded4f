// Two tables of notes with the same columns, so that two controllers of one application can be compared.
import type { Authenticator } from '../../../packages/kit/src/auth/authenticator.ts';
import { createTable, migration, model, t, timestamps } from '../../../packages/kit/src/db/index.ts';

const columns = { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(80), body: t.text(400), ...timestamps() };
export const plainNotes = model('plain_notes', columns);
export const notes = model('notes', columns);

export const notesModule = {
  name: 'notes',
  models: [plainNotes, notes],
  migrations: [migration('0001_initial', [createTable('plain_notes', columns), createTable('notes', columns)])],
};

const user = {
  id: '00000000-0000-7000-8000-000000000001',
  username: 'ann',
  email: null,
  is_active: true,
  is_staff: false,
  is_superuser: false,
};

export const everybody: Authenticator = {
  name: 'everybody',
  securityScheme: { type: 'http', scheme: 'none' },
  authenticate: () => ({ user, scheme: 'everybody', scopes: null }),
};

/** What a create is sent. */
export const NOTE = JSON.stringify({ title: 'a note', body: 'x'.repeat(200) });
