-- name: Product :one
SELECT * FROM products WHERE id = $1;

-- name: Orders :many
SELECT o.id, p.name, o.count, p.cents FROM orders o JOIN products p ON p.id = o.product_id WHERE o.customer = $1;

-- name: Take :exec
UPDATE products SET stock = stock - sqlc.arg(count) WHERE id = $1;

-- name: Order :exec
INSERT INTO orders (customer, product_id, count) VALUES ($1, $2, $3);

-- name: Discount :many
UPDATE products SET cents = cents * (100 - sqlc.arg(percent)::bigint) / 100 WHERE category = $1 RETURNING id;
