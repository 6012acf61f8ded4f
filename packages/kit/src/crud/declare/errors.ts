import { defineErrors } from '../../errors/catalog.ts';

/** Errors of generic CRUD. */
export const crudErrors = defineErrors('crud', {
  invalid_cursor: {
    status: 422,
    detail: 'The cursor does not belong to this list.',
    remedy: 'Follow `next` and `previous` as they are, or start at the first page: a cursor is bound to caller, filters and ordering.',
  },
  expand_too_costly: {
    status: 422,
    detail: 'The expansion would read too many rows.',
    remedy: 'Expand fewer paths, or ask for smaller pages with `limit`.',
    members: {
      paths_max: { type: 'integer', description: 'The limit of paths.' },
      depth_max: { type: 'integer', description: 'The limit of relations in a path.' },
      rows: { type: 'integer', description: 'The records that the request would read.' },
      rows_max: { type: 'integer', description: 'The limit of records.' },
    },
  },
  export_too_large: {
    status: 422,
    detail: 'The export has too many rows.',
    remedy: 'Filter the rows, and export them in several parts; `rows_max` is the limit.',
    members: { rows_max: { type: 'integer', description: 'The limit of rows.' } },
  },
  deleted_with_parent: {
    status: 409,
    detail: 'The record was deleted together with its parent, and the parent is still deleted.',
    remedy: 'Restore the parent (`parent` is its resource); this record is restored with it.',
    members: { parent: { type: 'string', description: 'The relation to the deleted parent.' } },
  },
  too_many_related: {
    status: 409,
    detail: 'Too many related records would change with this record.',
    remedy: 'Delete the related records first, in smaller steps.',
    members: { rows_max: { type: 'integer', description: 'The limit of related records.' } },
  },
  too_many_groups: {
    status: 422,
    detail: 'The rows fall into too many groups.',
    remedy: 'Filter the rows, or group by a coarser column; `groups_max` is the limit.',
    members: { groups_max: { type: 'integer', description: 'The limit of groups.' } },
  },
  not_live: {
    status: 422,
    detail: 'The changes of this list cannot be followed.',
    remedy: 'Leave out the parameters that `errors` names, or request the list without `Accept: text/event-stream`.',
  },
  live_too_many_rows: {
    status: 422,
    detail: 'The list has too many records to be followed.',
    remedy: 'Filter the records; `rows_max` is the limit.',
    members: { rows_max: { type: 'integer', description: 'The limit of records.' } },
  },
  dry_run_not_possible: {
    status: 422,
    detail: 'This action has no dry run: it does something that cannot be undone.',
    remedy: 'Send the request without `dry_run`; read the records first to see what it would concern.',
  },
  invalid_transition: {
    status: 409,
    detail: 'This transition is not allowed from the current state.',
    remedy: 'Use one of the transitions in `allowed`; `GET /:id/transitions` returns the same list.',
    members: {
      from: { type: 'string', description: 'The current state.' },
      to: { type: 'string', description: 'The state that the transition leads to.' },
      allowed: { type: 'array', items: { type: 'string' }, description: 'The transitions that are possible now.' },
    },
  },
});
