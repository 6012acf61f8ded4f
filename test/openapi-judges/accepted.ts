/** Warnings that stay, each with its reason. */
const ACCEPTED: Readonly<Record<string, string>> = {
  'info-license': 'The licence of an API is a decision of its author, and `info` has no place for "none".',
  'info-contact': 'So is whom to ask.',
  'no-unused-components Component: "Counted"':
    '3.1 has no word for the events of a stream: they are in `x-item-schema`, which redocly does not follow.',
  'no-unused-components Component: "OrderChange"':
    'The events of a live list are in `itemSchema`, a word of OpenAPI 3.2 that redocly does not follow into `contentSchema`.',
  'no-unused-components Component: "FirmFeedChange"': 'The same.',
  'no-ambiguous-paths Paths should resolve unambiguously. Found two ambiguous paths: `/v1/webhooks/events/{id}` and `/v1/webhooks/{':
    'The id of an endpoint is a UUID, which `events` is not.',
  'array-items Schemas with "type: array", require a sibling "items" field components/schemas/Thing/properties/pair':
    'A tuple has `prefixItems` and `items: false`; the rule is older than both.',
  'array-items Schemas with "type: array", require a sibling "items" field components/schemas/NewThing/properties/pair': 'The same.',
};

/** What was found beside them. */
export const unaccepted = (found: readonly string[]): string[] =>
  found.filter((line) => !Object.keys(ACCEPTED).some((known) => line.startsWith(known)));
