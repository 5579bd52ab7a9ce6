with told as (
    select *, case lower(channel) when 'apple' then '0' when 'google' then '1' when 'facebook' then '2' when 'baidu' then '3'
        else nullif(split_part(split_part(url, '&channel_id=', 2), '&', 1), '') end as channel_id
    from bid
)
select auction, bidder, price, channel, channel_id from told where channel_id is not null
