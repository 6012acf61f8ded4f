import type { AdminResource } from './declaration.ts';
import type { AdminField } from './shapes.ts';

type Closed = Readonly<Record<string, string>>;

/** The field, with the reason where it is closed. */
export function closing<F extends AdminField>(field: F, closed: Closed): F {
  const refused = closed[field.name];
  return refused === undefined ? field : { ...field, refused };
}

/** The form of a new record; a record cannot be created by those who cannot write a field that it needs. */
export function closedCreation(creation: AdminResource['creation'], closed: Closed): AdminResource['creation'] {
  if ('refused' in creation) return creation;
  const fields = creation.fields.map((field) => closing(field, closed));
  const needed = fields.find(({ required, refused }) => required === true && refused !== undefined);
  return needed === undefined ? { fields } : { refused: `A new record needs ${needed.label}. ${needed.refused}` };
}
