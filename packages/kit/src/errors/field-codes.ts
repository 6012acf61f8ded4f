/**
 * The codes in `errors` of a 422, whichever library checked the value. Modules and schemas add their own where these say too little.
 * docs/reference/errors.md is generated from this table.
 */
export const fieldCodes: Readonly<Record<string, string>> = {
  required: 'The field is missing.',
  unknown_field: 'Unknown field. The message may suggest the intended name.',
  unknown_operator: 'The filter does not offer this operator.',
  invalid_type: 'The value has the wrong type.',
  invalid_value: 'The value is not one of those allowed; the message lists them.',
  invalid_format: 'The string does not match the required format, such as a date, an email address or a pattern.',
  too_small: 'The number is too small, the string too short, or the list has too few items.',
  too_big: 'The number is too big, the string too long, or the list has too many items.',
  number_not_exact: 'The number has more digits than a JSON number keeps, and would be stored as another one.',
  not_multiple_of: 'The number is not a multiple of the step.',
  invalid_key: 'The name of a property is invalid.',
  invalid_union: 'The value fits none of the alternatives.',
  duplicate: 'The value appears more than once.',
  not_unique: 'Another record has this value already.',
  unknown_reference: 'The record does not exist, or the caller cannot see it.',
  invalid: 'The value is invalid for another reason; see the message.',
};
