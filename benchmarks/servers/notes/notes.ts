// Two tables of notes with the same columns, so that two controllers of one application can be compared.
import { createTable, migration, model, t, timestamps } from '../../../packages/kit/src/db/index.ts';

const columns = { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(80), body: t.text(400), ...timestamps() };
export const plainNotes = model('plain_notes', columns);
export const notes = model('notes', columns);

export const notesModule = {
  name: 'notes',
  models: [plainNotes, notes],
  migrations: [migration('0001_initial', [createTable('plain_notes', columns), createTable('notes', columns)])],
};

/** What a create is sent. */
export const NOTE = JSON.stringify({ title: 'a note', body: 'x'.repeat(200) });
