import { hasScopes, type Module } from 'kit';
import { CrudController, resource } from 'kit/crud';
import { model, t, timestamps, versioned } from 'kit/db';
import initial from '../migrations/0001_initial.ts';

export const notes = model(
  'notes',
  {
    id: t.uuidv7().pk(),
    owner_id: t.uuid().readOnly().person(),
    title: t.text(200),
    body: t.text().dbDefault(''),
    pinned: t.bool().dbDefault(false),
    ...timestamps(),
    ...versioned(),
  },
  { indexes: [{ columns: ['owner_id', '-id'] }, { columns: ['owner_id', 'title'] }, { columns: ['owner_id', 'pinned'] }] },
);

/** Callers see, change and create their own notes. */
const noteResource = resource(notes, { owner: 'owner_id', version: 'version' });

/** People come with a session, programs with an API key that has the scope. */
export class NoteController extends CrudController(noteResource, {
  permission: hasScopes({ allowUnscoped: true }),
  scope: 'notes', // notes:read, notes:write
  filters: { pinned: ['eq'] },
  search: ['title', 'body'],
  ordering: { by: ['title'] },
}) {}

export function noteModule(): Module {
  return { name: 'notes', models: [notes], migrations: [initial] };
}
