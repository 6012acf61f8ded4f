/** Exact in cents: `12.50` × 3 = `37.50`. */
export function totalOf(unitPrice: string, quantity: number): string {
  const cents = BigInt(unitPrice.replace('.', '')) * BigInt(quantity);
  const digits = cents.toString().padStart(3, '0');
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}
