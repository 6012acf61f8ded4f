/** `ApiKeyController` and `rotate` → `api_key_rotate`. */
export function operationId(controller: string, field: string, suffix: string): string {
  return `${controllerId(controller)}_${snake(field)}${suffix}`;
}

/** `ApiKeyController` → `api_key`. */
export function controllerId(controller: string): string {
  return snake(controller.replace(/Controller$/, '')) || 'controller';
}

/** Small letters and underscores: `/v2/api-keys` → `v2_api_keys`. */
export function snake(text: string): string {
  return text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
    .toLowerCase();
}
