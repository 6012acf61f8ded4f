/** `orders` → `order`, `categories` → `category`, `addresses` → `address`. Say `name` where English does not work this way. */
export function singular(table: string): string {
  if (/[^aeiou]ies$/.test(table)) return `${table.slice(0, -3)}y`;
  if (/(?:ss|sh|ch|x|z)es$/.test(table)) return table.slice(0, -2);
  return /[^s]s$/.test(table) ? table.slice(0, -1) : table;
}

/** `order_item` → `OrderItem`. */
export function pascal(name: string): string {
  return name.replaceAll(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The component of the OpenAPI document that describes rows of the table: `order_items` → `OrderItem`. */
export function componentName(table: string): string {
  return pascal(singular(table));
}
