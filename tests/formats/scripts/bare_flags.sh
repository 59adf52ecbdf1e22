# A config file of flags alone, a flag a line without signs of continuation.
--num-layers 12
--hidden-size 768
--num-attention-heads 12
--seq-length 1024
--max-position-embeddings 1024
--vocab-size 50257
--micro-batch-size 8
--global-batch-size 64
--bf16
