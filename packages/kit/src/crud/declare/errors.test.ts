import { expect, test } from 'vitest';
import { coreErrors } from '../../errors/core-errors.ts';
import { dbErrors } from '../../db/errors.ts';
import { fieldCodes } from '../../errors/field-codes.ts';
import { idempotencyErrors } from '../../http/errors.ts';
import { crudErrors } from './errors.ts';

test('the codes of generic CRUD and idempotency have their statuses, and each says what to do', () => {
  const catalog = { ...coreErrors, ...dbErrors, ...crudErrors, ...idempotencyErrors } as Readonly<
    Record<string, { readonly status: number; readonly remedy?: string | undefined }>
  >;
  const statuses = {
    invalid_cursor: 422,
    invalid_transition: 409,
    precondition_failed: 412,
    precondition_required: 428,
    invalid_idempotency_key: 400,
    idempotency_key_required: 400,
    idempotency_key_reused: 422,
    request_in_progress: 409,
    idempotency_lost: 409,
    response_not_kept: 409,
    still_referenced: 409,
    deleted_with_parent: 409,
    export_too_large: 422,
    too_many_groups: 422,
    expand_too_costly: 422,
  };
  for (const [code, status] of Object.entries(statuses)) {
    expect([code, catalog[code]?.status]).toEqual([code, status]);
    expect([code, (catalog[code]?.remedy ?? '').length > 10]).toEqual([code, true]);
  }
  for (const code of ['unknown_field', 'unknown_operator', 'not_unique', 'unknown_reference', 'duplicate', 'required'])
    expect(Object.keys(fieldCodes)).toContain(code);
});
